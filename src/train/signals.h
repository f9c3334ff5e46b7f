// SIGINT and SIGTERM ask for a stop after the step, SIGUSR1 for a save; a second SIGINT or SIGTERM ends the process at once.
#pragma once

namespace dz::train {

// Installs the handlers while it lives; puts the old ones back.
class Signals {
 public:
  explicit Signals(bool stop_on_signal);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int stop_signal() const;   // 0, or the signal that asked
  bool take_save_request();  // true once for each SIGUSR1
};

}  // namespace dz::train
