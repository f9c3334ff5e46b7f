// The promise of docs/checkpoints.md, tested at every file-system operation of a save: the process is killed there, or the operation
// fails, and what is left must hold a complete checkpoint with the right contents.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "base/error.h"
#include "checkpoint/fault.h"
#include "checkpoint/small_state.h"

namespace dz::checkpoint {
namespace {

enum class Ending { kExited, kKilled };

struct Result {
  Ending ending;
  int code;
};

// Runs `body` in a process of its own under DZ_TEST_CRASH=spec; the exit code is 0 or that of the error.
Result in_child(const std::string& spec, const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("DZ_TEST_CRASH", spec.c_str(), 1);
    int code = 0;
    try {
      body();
    } catch (const Error& error) {
      code = static_cast<int>(error.code());
    } catch (...) {
      code = 99;
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? Result{Ending::kKilled, WTERMSIG(status)} : Result{Ending::kExited, WEXITSTATUS(status)};
}

void save_step(const fs::path& directory, int64_t step, int64_t keep) {
  ThreadPool pool(1);  // no threads: this also runs after fork
  save(directory, SmallState(step).snapshot(), keep, pool);
}

bool holds(const Checkpoint& checkpoint, int64_t step) {
  SmallState loaded(0);
  loaded.load_from(checkpoint);
  return loaded == SmallState(step);
}

bool any_hidden(const fs::path& directory) {
  for (const std::string& name : names_in(directory))
    if (name.front() == '.') return true;
  return false;
}

struct Case {
  const char* name;
  std::vector<int64_t> before;  // steps saved first
  int64_t step;                 // the save that is hit
  int64_t keep;
};

class EveryOperation : public testing::TestWithParam<Case> {
 protected:
  // A directory with the earlier checkpoints in it.
  void prepare(const fs::path& directory) const {
    for (const int64_t step : GetParam().before) save_step(directory, step, 0);
  }
  int64_t operations() const {
    const Scratch scratch(memory_directory());
    prepare(scratch.path());
    const int64_t before = fault_operations();
    save_step(scratch.path(), GetParam().step, GetParam().keep);
    return fault_operations() - before;
  }
};

TEST_P(EveryOperation, KilledThereLeavesACompleteCheckpoint) {
  const Case& c = GetParam();
  const int64_t count = operations();
  ASSERT_GT(count, 25);
  int old_ones = 0, new_ones = 0;
  for (int64_t k = 1; k <= count; ++k) {
    const Scratch scratch(memory_directory());
    prepare(scratch.path());
    const Result result = in_child("save:" + std::to_string(k), [&] { save_step(scratch.path(), c.step, c.keep); });
    ASSERT_EQ(result.ending, Ending::kKilled) << "operation " << k;
    const Newest newest = find_newest(scratch.path());
    if (c.before.empty() && !newest.checkpoint) {
      ++old_ones;
    } else {
      ASSERT_TRUE(newest.checkpoint) << "operation " << k;
      const int64_t step = newest.checkpoint->step;
      ASSERT_TRUE(step == c.step || step == c.before.back()) << "operation " << k << " step " << step;
      ASSERT_TRUE(holds(*newest.checkpoint, step)) << "operation " << k;
      ++(step == c.step ? new_ones : old_ones);
    }
    EXPECT_TRUE(newest.skipped.empty()) << "operation " << k << ": an unfinished save is hidden, not half a checkpoint";

    clean_leftovers(scratch.path());
    EXPECT_FALSE(any_hidden(scratch.path())) << "operation " << k;
    save_step(scratch.path(), c.step, c.keep);
    EXPECT_TRUE(holds(*find_newest(scratch.path()).checkpoint, c.step)) << "operation " << k;
  }
  // Negative control: both outcomes occur, so the kills really fall before and after the rename.
  EXPECT_GT(new_ones, 0);
  EXPECT_TRUE(old_ones > 20 || (!c.before.empty() && c.before.back() == c.step));
}

TEST_P(EveryOperation, FailingThereLeavesTheOlderOnesWhole) {
  const Case& c = GetParam();
  const int64_t count = operations();
  int failures = 0;
  for (int64_t k = 1; k <= count; ++k) {
    const Scratch scratch(memory_directory());
    prepare(scratch.path());
    const Result result = in_child("fail:" + std::to_string(k), [&] { save_step(scratch.path(), c.step, c.keep); });
    ASSERT_EQ(result.ending, Ending::kExited) << "operation " << k;
    ASSERT_TRUE(result.code == 0 || result.code == static_cast<int>(ExitCode::kIo)) << "operation " << k << " exit " << result.code;
    failures += result.code != 0;
    const Newest newest = find_newest(scratch.path());
    if (result.code == 0) {
      ASSERT_TRUE(newest.checkpoint && holds(*newest.checkpoint, c.step)) << "operation " << k;
    } else if (!c.before.empty()) {
      ASSERT_TRUE(newest.checkpoint && holds(*newest.checkpoint, newest.checkpoint->step)) << "operation " << k;
      // Before the rename nothing of the failed save is left; if only the last sync failed, the new one is simply there.
      EXPECT_TRUE(newest.checkpoint->step == c.step || names_in(scratch.path()).size() == c.before.size()) << "operation " << k;
    }
  }
  EXPECT_GT(failures, 25);
}

INSTANTIATE_TEST_SUITE_P(Saves, EveryOperation,
                         testing::Values(Case{"first", {}, 2, 1}, Case{"second_keep_1", {2}, 4, 1}, Case{"fourth_keep_2", {2, 4, 6}, 8, 2},
                                         Case{"again", {2, 4}, 4, 0}),
                         [](const auto& info) { return info.param.name; });

TEST(Crash, OperationsAreCountedOverTheSavesOfAProcess) {
  const Scratch scratch(memory_directory());
  const int64_t before = fault_operations();
  save_step(scratch.path(), 1, 0);
  const int64_t one = fault_operations() - before;
  const Result result = in_child("save:" + std::to_string(one + 5), [&] {
    for (int64_t step = 2; step < 10; ++step) save_step(scratch.path(), step, 0);
  });
  EXPECT_EQ(result.ending, Ending::kKilled);
  EXPECT_EQ(find_newest(scratch.path()).checkpoint->step, 2) << "killed in the second save";
}

TEST(Crash, ARealWriteErrorNamesTheSizesAndRemovesTheUnfinishedFiles) {
  const Scratch scratch;
  save_step(scratch.path(), 2, 1);
  const fs::path report = scratch / "message";
  const Result result = in_child("", [&] {
    ThreadPool pool(1);
    const SmallState large(4, 100000);
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1'000'000, 1'000'000};  // a write beyond 1 MB fails with EFBIG, as one on a full disk does with ENOSPC
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      save(scratch.path(), large.snapshot(), 1, pool);
    } catch (const Error& error) {
      write_bytes(report, error.what());
      throw;
    }
  });
  EXPECT_EQ(result.code, static_cast<int>(ExitCode::kIo));
  const std::string message = read_file(report);
  for (const char* part : {"saving step 4 failed", "File too large", "needed 10800", "free now", "newest complete checkpoint is step-2"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  EXPECT_EQ(names_in(scratch.path()), (std::vector<std::string>{"message", "step-2"}));
  EXPECT_TRUE(holds(*find_newest(scratch.path()).checkpoint, 2));
}

TEST(Leftovers, OfDeadProcessesGoAndOfLiveOnesStay) {
  const Scratch scratch;
  save_step(scratch.path(), 2, 0);
  fs::create_directory(scratch / ".step-4.tmp-999999");
  write_bytes(scratch / ".step-4.tmp-999999/model.safetensors", "half");
  fs::create_directory(scratch / ".step-6.tmp-1");
  const int live = ::open((scratch / ".step-6.tmp-1").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(live, LOCK_EX), 0);
  const std::vector<std::string> notes = clean_leftovers(scratch.path());
  ::close(live);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(names_in(scratch.path()), (std::vector<std::string>{".step-6.tmp-1", "step-2"}));
  EXPECT_EQ(clean_leftovers(scratch.path()).size(), 1u);
  EXPECT_EQ(names_in(scratch.path()), std::vector<std::string>{"step-2"});
}

TEST(Leftovers, AnInterruptedReplacementIsPutBack) {
  const Scratch scratch;
  save_step(scratch.path(), 2, 0);
  fs::rename(scratch / "step-2", scratch / ".step-2.old-999999");
  EXPECT_FALSE(find_newest(scratch.path()).checkpoint);
  ASSERT_EQ(clean_leftovers(scratch.path()).size(), 1u);
  EXPECT_TRUE(holds(*find_newest(scratch.path()).checkpoint, 2));
}

TEST(Leftovers, OtherHiddenNamesAreNotOurs) {
  const Scratch scratch;
  for (const char* name : {".step-4", ".step-x.tmp-1", ".step-4.bak-1", ".step-4.tmp"}) fs::create_directory(scratch / name);
  EXPECT_TRUE(clean_leftovers(scratch.path()).empty());
  EXPECT_EQ(names_in(scratch.path()).size(), 4u);
}

}  // namespace
}  // namespace dz::checkpoint
