// The two forms that a conversion writes, each into a directory that is not yet anybody's.
#pragma once

#include "convert/convert.h"

namespace dz::convert {

// Counts what passes by for the user's progress line.
class Meter {
 public:
  Meter(const ProgressOf& progress, int64_t total) : progress_(progress), total_(total) {}
  void add(int64_t bytes) {
    done_ += bytes;
    if (progress_) progress_(done_, total_);
  }

 private:
  const ProgressOf& progress_;
  int64_t total_, done_ = 0;
};

// Bytes of tensor data that each will write.
int64_t hugging_face_bytes(const Source& source, const Options& options);
int64_t native_bytes(const Source& source);

// Shards with their index, config.json and side files; with options.moments also the two files of moments. All is read back and compared.
void write_hugging_face(const Source& source, const Options& options, const fs::path& directory, Meter& meter, Report& report);

// A checkpoint: of step 0 with moments 0 from Hugging Face, or a verified copy of a native one. All is read back and compared.
void write_native(const Source& source, const fs::path& directory, Meter& meter, Report& report);

}  // namespace dz::convert
