// What a person sees of a run: a line that is redrawn on a terminal, plain lines in a file or pipe.
#pragma once

#include <string>

#include "train/metrics.h"

namespace dz::train {

class Progress {
 public:
  // log_every: steps between plain lines. Speed and ETA come from the steps of this process, the first left out.
  Progress(int64_t steps, int64_t log_every);
  ~Progress();
  void note(const std::string& line);  // a line that stays
  void step(const StepReport& report);

 private:
  std::string line(const StepReport& report) const;
  void clear();

  int64_t steps_, log_every_;
  int64_t timed_steps_ = 0;
  double timed_seconds_ = 0;
  bool terminal_, drawn_ = false, first_ = true;
};

// 4 -> "4", 41200000 -> "41.2 M", 4096 -> "4,096".
std::string short_count(double count);
std::string with_commas(int64_t count);

}  // namespace dz::train
