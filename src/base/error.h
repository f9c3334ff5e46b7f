// Errors that a user can cause. Each says where, what was found, what was expected and what to do, and carries its exit code.
// Bugs of ours hit DZ_CHECK instead. Only main turns either into an exit.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace dz {

// docs/exit-codes.md explains each to users.
enum class ExitCode : int {
  kDone = 0,
  kDifferent = 1,         // compared, and different
  kNothingToCompare = 2,  //
  kUsage = 64,            // wrong command line
  kBadData = 65,          // a file's contents are wrong
  kNoInput = 66,          // an input does not exist or cannot be opened
  kBug = 70,              // ours
  kCannotCreate = 73,     //
  kIo = 74,               // a read or write failed
  kTryAgain = 75,         // stopped by a signal after a save, or the run directory is in use
  kConfig = 78,           // configuration, or data or recipe that does not match the run
  kDiverged = 79,         // training diverged
};

struct Complaint {
  std::string where;     // path, path:line: key, or path at offset
  std::string found;     // what is there; may be empty when `what` says it all
  std::string expected;  // what should be there
  std::string hint;      // what to do
};

// "where: found F, expected E; hint", leaving out what is empty.
std::string to_string(const Complaint& complaint);

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Error(ExitCode code, const Complaint& complaint) : Error(code, to_string(complaint)) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

template <ExitCode kCode>
class TypedError : public Error {
 public:
  explicit TypedError(const std::string& message) : Error(kCode, message) {}
  explicit TypedError(const Complaint& complaint) : Error(kCode, complaint) {}
};

using UsageError = TypedError<ExitCode::kUsage>;
using DataError = TypedError<ExitCode::kBadData>;   // tokens, text, JSON, safetensors
using InputError = TypedError<ExitCode::kNoInput>;  // missing or unreadable input
using CreateError = TypedError<ExitCode::kCannotCreate>;
using IoError = TypedError<ExitCode::kIo>;
using TryAgainError = TypedError<ExitCode::kTryAgain>;
using ConfigError = TypedError<ExitCode::kConfig>;  // also: recipe, data or model that does not match a run
using DivergedError = TypedError<ExitCode::kDiverged>;

// A corrupt or incomplete checkpoint: bad data, but caught by the search for the newest complete one.
class CheckpointError : public DataError {
 public:
  using DataError::DataError;
};

}  // namespace dz
