// Files that the tests of this room write: a folder of their own, and the two compressions.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace dz::text {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (fs::temp_directory_path() / "dz-text-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TestFolder(TestFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~TestFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  fs::path write(const std::string& name, std::string_view bytes) const {
    const fs::path file = path_ / name;
    dz::create_directories(file.parent_path());
    File out = File::create(file);
    out.write(bytes);
    out.close();
    return file;
  }

 private:
  fs::path path_;
};

inline std::string gzip(std::string_view text) {
  z_stream state{};
  deflateInit2(&state, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&state, text.size()) + 32, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  deflate(&state, Z_FINISH);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

inline std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

}  // namespace dz::text
