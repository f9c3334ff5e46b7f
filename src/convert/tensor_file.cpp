#include "convert/tensor_file.h"

#include <fcntl.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/elements.h"
#include "checkpoint/fault.h"
#include "convert/source.h"

namespace dz::convert {
namespace {

[[noreturn]] void not_as_written(const fs::path& path, const std::string& found, const std::string& expected) {
  throw IoError(Complaint{path.string(), found, expected + ", as it was written", "the disk gave back something else; nothing was kept"});
}

// Hashes a stream of bytes in pieces of kPiece, wherever its own pieces end.
class PieceHasher {
 public:
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), static_cast<size_t>(kPiece) - piece_.size());
      piece_.insert(piece_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
      bytes = bytes.subspan(count);
      if (piece_.size() == static_cast<size_t>(kPiece)) close();
    }
  }
  std::vector<std::string> finish() {
    if (!piece_.empty()) close();
    return std::move(hashes_);
  }

 private:
  void close() {
    hashes_.push_back(xxh3_128(piece_).hex());
    piece_.clear();
  }
  std::vector<std::byte> piece_;
  std::vector<std::string> hashes_;
};

}  // namespace

void write_tensor_file(const fs::path& path, const std::vector<checkpoint::TensorSpec>& tensors, const ReadTensor& read,
                       const std::function<void(int64_t)>& passed, WrittenTensors& written) {
  const checkpoint::SafetensorsPlan plan = checkpoint::plan_safetensors(tensors, checkpoint::kTorchFormat);
  checkpoint::fault_point(path);
  File file = File::create(path);
  checkpoint::write_or_fault(file, std::as_bytes(std::span(plan.head)));
  std::vector<std::byte> bytes;
  for (const checkpoint::StoredTensor& tensor : plan.tensors) {
    PieceHasher hasher;
    read(tensor.name, [&](std::span<const float> values) {
      bytes.resize(values.size() * (tensor.dtype == "F32" ? 4 : 2));
      checkpoint::narrow(values, tensor.dtype, bytes);
      checkpoint::write_or_fault(file, bytes);
      hasher.add(bytes);
      passed(static_cast<int64_t>(bytes.size()));
    });
    written[tensor.name] = {{tensor.name, tensor.dtype, tensor.shape}, hasher.finish()};
  }
  checkpoint::fault_point(path);
  file.sync();
  ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  checkpoint::fault_point(path);
  file.close();
}

void read_back(const fs::path& path, const WrittenTensors& written, const std::function<void(int64_t)>& passed) {
  const checkpoint::TensorSource source = checkpoint::TensorSource::open(path);
  if (source.tensors().size() != written.size())
    not_as_written(path, std::to_string(source.tensors().size()) + " tensors", std::to_string(written.size()));
  std::vector<std::byte> piece;
  for (const checkpoint::StoredTensor& stored : source.tensors()) {
    const auto expected = written.find(stored.name);
    if (expected == written.end()) not_as_written(path, "tensor \"" + stored.name + "\"", "none of this name");
    const auto& [spec, hashes] = expected->second;
    if (stored.dtype != spec.dtype || stored.shape != spec.shape)
      not_as_written(path, "tensor \"" + stored.name + "\" of another type or shape", spec.dtype);
    for (int64_t begin = 0, i = 0; begin < stored.bytes; begin += kPiece, ++i) {
      piece.resize(static_cast<size_t>(std::min(kPiece, stored.bytes - begin)));
      source.read_part(stored, begin, piece);
      if (xxh3_128(piece).hex() != hashes[static_cast<size_t>(i)])
        not_as_written(source.path_of(stored), "tensor \"" + stored.name + "\": other bytes from byte " + std::to_string(begin) + " on", "those");
      passed(static_cast<int64_t>(piece.size()));
    }
  }
}

}  // namespace dz::convert
