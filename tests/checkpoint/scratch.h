// A directory of its own for a test, removed afterwards; and small helpers to damage files on purpose.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/file.h"

namespace dz {

class Scratch {
 public:
  Scratch() : Scratch(fs::temp_directory_path()) {}
  explicit Scratch(const fs::path& parent) {
    std::string name = (parent / "dz-checkpoint-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed for " + name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

// A file system in memory where there is one: for tests of many saves, whose time would all be fsync.
inline fs::path memory_directory() {
  const fs::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK | X_OK) == 0 ? memory : fs::temp_directory_path();
}

inline void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline void flip_bit(const fs::path& path, size_t byte) {
  std::string bytes = read_file(path);
  bytes.at(byte) = static_cast<char>(bytes.at(byte) ^ 1);
  write_bytes(path, bytes);
}

// The message of the error of type E that `body` must throw.
template <class E, class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace dz
