#include "train/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace dz::train {
namespace {

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 86400) return fmt::format("{}d {:02}:{:02}", whole / 86400, whole / 3600 % 24, whole / 60 % 60);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string short_count(double count) {
  if (count >= 1e12) return fmt::format("{:.1f} T", count / 1e12);
  if (count >= 1e9) return fmt::format("{:.1f} G", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.1f} M", count / 1e6);
  if (count >= 1e3) return fmt::format("{:.1f} k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

std::string with_commas(int64_t count) {
  std::string text = std::to_string(count);
  const int64_t first = text[0] == '-' ? 1 : 0;
  for (auto i = static_cast<int64_t>(text.size()) - 3; i > first; i -= 3) text.insert(static_cast<size_t>(i), ",");
  return text;
}

Progress::Progress(int64_t steps, int64_t log_every) : steps_(steps), log_every_(log_every), terminal_(::isatty(STDOUT_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (drawn_) std::fputs("\r\033[K", stdout);
  drawn_ = false;
}

void Progress::note(const std::string& line) {
  clear();
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

std::string Progress::line(const StepReport& report) const {
  if (report.skipped) {
    return fmt::format("step {:>4}/{}  loss {:.3f}  norm {:.2f}  SKIPPED: {}", report.step, steps_, report.loss, report.grad_norm,
                       report.skip_reason);
  }
  const double speed = report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0;
  const double share = report.seconds > 0 ? 100 / report.seconds : 0;
  std::string text = fmt::format("step {:>4}/{}  loss {:.3f}  norm {:.2f}  lr {:.2e}  {} tokens/s  {:.0f}% of peak", report.step, steps_, report.loss,
                                 report.grad_norm, report.lr, short_count(speed), 100 * report.mfu);
  const PhaseSeconds& spent = report.phases;
  text += fmt::format("  data {:.0f}%  fwd {:.0f}%  head {:.0f}%  bwd {:.0f}%  opt {:.0f}%", share * spent.data, share * spent.forward,
                      share * spent.head, share * spent.backward, share * spent.optimizer);
  if (spent.communication > 0) text += fmt::format("  comm {:.0f}%", share * spent.communication);
  if (spent.digest > 0) text += fmt::format("  digest {:.0f}%", share * spent.digest);
  if (spent.save > 0) text += fmt::format("  save {:.0f}%", share * spent.save);
  if (timed_steps_ > 0) text += "  ETA " + duration(timed_seconds_ / static_cast<double>(timed_steps_) * static_cast<double>(steps_ - report.step));
  if (report.digests)
    text += fmt::format("  cert {} {}", report.digests->parameters.total.hex().substr(0, 4), report.digests->moments.total.hex().substr(0, 4));
  return text;
}

void Progress::step(const StepReport& report) {
  if (!first_) {
    ++timed_steps_;
    timed_seconds_ += report.seconds;
  }
  first_ = false;
  const bool stays = report.skipped || report.step % log_every_ == 0 || report.step == steps_;
  if (!stays && !terminal_) return;
  clear();
  fmt::print("{}{}", line(report), stays ? "\n" : "");
  drawn_ = !stays;
  std::fflush(stdout);
}

}  // namespace dz::train
