#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace dz {
namespace {

std::string cause() { return std::strerror(errno); }

[[noreturn]] void fail_io(const fs::path& path, const std::string& what) { throw IoError(path.string() + ": " + what + " failed: " + cause()); }

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

File File::open_read(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer would block here
  if (fd < 0) throw InputError(path.string() + ": cannot open for reading: " + cause());
  File file(fd, path);
  struct stat info {};
  if (::fstat(fd, &info) != 0) fail_io(path, "fstat");
  if (!S_ISREG(info.st_mode))
    throw InputError(Complaint{
        .where = path.string(), .found = S_ISDIR(info.st_mode) ? "a directory" : "a special file", .expected = "a regular file", .hint = ""});
  return file;
}

File File::create(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw CreateError(path.string() + ": cannot create: " + cause());
  return File(fd, path);
}

File File::append(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) throw CreateError(path.string() + ": cannot open for appending: " + cause());
  return File(fd, path);
}

File File::temporary() {
  std::error_code error;
  const fs::path directory = fs::temp_directory_path(error);
  std::string name = (directory / "deltazero-XXXXXX").string();
  const int fd = error ? -1 : ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) {
    throw CreateError(Complaint{.where = error ? "TMPDIR" : directory.string(),
                                .found = error ? error.message() : cause(),
                                .expected = "a directory for temporary files",
                                .hint = "set TMPDIR to one"});
  }
  ::unlink(name.c_str());
  return File(fd, name);
}

File::File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

int64_t File::size() const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) fail_io(path_, "fstat");
  return info.st_size;
}

void File::read_at(int64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(fd_, out.data() + done, out.size() - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io(path_, "reading at byte " + std::to_string(offset + static_cast<int64_t>(done)));
    if (got == 0) {
      throw DataError(Complaint{.where = path_.string() + " at byte " + std::to_string(offset),
                                .found = std::to_string(done) + " bytes before the end of the file",
                                .expected = std::to_string(out.size()),
                                .hint = "the file is truncated or still being written"});
    }
    done += static_cast<size_t>(got);
  }
}

void File::write(std::span<const std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_io(path_, "writing " + std::to_string(bytes.size() - done) + " bytes");
    done += static_cast<size_t>(put);
  }
}

void File::write_at(int64_t offset, std::span<const std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = ::pwrite(fd_, bytes.data() + done, bytes.size() - done, offset + static_cast<int64_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_io(path_, "writing " + std::to_string(bytes.size() - done) + " bytes");
    done += static_cast<size_t>(put);
  }
}

void File::truncate(int64_t size) {
  if (::ftruncate(fd_, size) != 0) fail_io(path_, "truncating to " + std::to_string(size) + " bytes");
}

void File::sync() {
  if (::fsync(fd_) != 0) fail_io(path_, "fsync");
}

void File::close() {
  const int fd = std::exchange(fd_, -1);
  if (fd >= 0 && ::close(fd) != 0) fail_io(path_, "close");
}

std::string read_file(const fs::path& path) {
  const File file = File::open_read(path);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

void write_file_atomic(const fs::path& given, std::string_view bytes) {
  // Through a link to the file behind it; a device or pipe must not become a regular file.
  std::error_code ignored;
  const fs::path path = fs::is_symlink(given, ignored) ? fs::weakly_canonical(given, ignored) : given;
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    throw CreateError(Complaint{.where = given.string(),
                                .found = fs::is_directory(path, ignored) ? "a directory" : "a special file",
                                .expected = "a regular file, or none yet",
                                .hint = ""});
  }
  const fs::path temporary = path.string() + ".tmp-" + std::to_string(::getpid());
  try {
    File file = File::create(temporary);
    file.write(bytes);
    file.sync();
    file.close();
    rename_durably(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void sync_directory(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_io(directory, "opening the directory to sync it");
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  errno = error;
  // Some file systems do not support syncing a directory; there is nothing more that we could do on them.
  if (result != 0 && error != EINVAL && error != ENOTSUP) fail_io(directory, "fsync");
}

void create_directories(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw CreateError(directory.string() + ": cannot create the directory: " + error.message());
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw IoError(from.string() + ": cannot rename to " + to.string() + ": " + cause());
  sync_directory(parent_of(to));
}

MappedFile::MappedFile(const fs::path& path) {
  const File file = File::open_read(path);
  size_ = static_cast<size_t>(file.size());
  if (size_ == 0) return;
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (data == MAP_FAILED) fail_io(path, "mapping into memory");
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace dz
