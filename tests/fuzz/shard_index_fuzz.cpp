// Feeds damaged model.safetensors.index.json files to the reader of sharded models: it may refuse them, but not crash, hang, or open a file
// outside of the directory.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "fuzz/fuzz.h"

namespace {

// A directory with two shards of one tensor each, removed at the end.
class Model {
 public:
  Model() {
    std::string name = (dz::fs::exists("/dev/shm") ? "/dev/shm" : dz::fs::temp_directory_path().string()) + std::string("/dz-fuzz-XXXXXX");
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
    for (const char* shard : {"a", "b"}) {
      const std::string data(8, 'x');
      dz::File file = dz::File::create(path_ / (std::string(shard) + ".safetensors"));
      dz::checkpoint::write_safetensors({{shard, "F32", {2}, std::as_bytes(std::span(data))}}, {},
                                        [&](std::span<const std::byte> bytes) { file.write(bytes); });
    }
  }
  ~Model() { dz::fs::remove_all(path_); }
  const dz::fs::path& path() const { return path_; }

 private:
  dz::fs::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Model model;
  {
    dz::File file = dz::File::create(model.path() / "model.safetensors.index.json");
    file.write(std::as_bytes(std::span(data, size)));
  }
  try {
    const auto source = dz::checkpoint::TensorSource::open(model.path());
    for (const auto& tensor : source.tensors())
      if (source.path_of(tensor).parent_path() != model.path()) std::abort();
    ++dz::fuzz::accepted;
  } catch (const dz::Error&) {
  }
  return 0;
}
