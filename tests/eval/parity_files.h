// Files that the parity tests write: a folder of their own, and safetensors files with a few tensors.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/safetensors.h"

namespace dz::eval::test {

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "dz-parity-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

class Tensors {
 public:
  template <class V>
  Tensors& add(const std::string& name, const char* dtype, const Shape& shape, const std::vector<V>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    tensors_.push_back({name, dtype, shape, {bytes.begin(), bytes.end()}});
    return *this;
  }
  void write(const fs::path& path) const {
    std::vector<checkpoint::RawTensor> list;
    for (const Owned& tensor : tensors_) list.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
    File file = File::create(path);
    checkpoint::write_safetensors(list, {}, [&](std::span<const std::byte> bytes) { file.write(bytes); });
    file.close();
  }

 private:
  struct Owned {
    std::string name, dtype;
    Shape shape;
    std::vector<std::byte> bytes;
  };
  std::vector<Owned> tensors_;
};

}  // namespace dz::eval::test
