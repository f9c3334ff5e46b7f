#include "data/open_files.h"

#include <fmt/format.h>

#include "base/error.h"

namespace dz::data {

void OpenFiles::add(fs::path path, int64_t bytes) {
  paths_.push_back(std::move(path));
  bytes_.push_back(bytes);
  open_.emplace_back();
}

void OpenFiles::read(size_t index, int64_t offset, std::span<std::byte> out) const {
  try {
    open(index, offset)->read_at(offset, out);
  } catch (const IoError& error) {
    throw DataError(error.what());  // names path, byte and cause already
  }
}

std::shared_ptr<const File> OpenFiles::open(size_t index, int64_t offset) const {
  {
    const std::lock_guard lock(mutex_);
    if (open_[index]) return open_[index];
  }
  std::shared_ptr<const File> file;
  try {
    file = std::make_shared<const File>(File::open_read(paths_[index]));
  } catch (const InputError& error) {
    throw DataError(fmt::format("{}; its byte {} is needed", error.what(), offset));
  }
  if (file->size() != bytes_[index]) {
    throw DataError(Complaint{.where = fmt::format("{} at byte {}", paths_[index].string(), offset),
                              .found = fmt::format("a file of {} bytes", file->size()),
                              .expected = fmt::format("{}, as when it was first opened", bytes_[index]),
                              .hint = "the file was truncated or replaced while it was in use"});
  }
  const std::lock_guard lock(mutex_);
  if (open_[index]) return open_[index];  // another thread was faster
  if (order_.size() == kMost) {
    open_[order_.front()].reset();  // readers in progress keep theirs
    order_.pop_front();
  }
  order_.push_back(index);
  open_[index] = file;
  return file;
}

}  // namespace dz::data
