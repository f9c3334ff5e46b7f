#include "train/signals.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

namespace dz::train {
namespace {

volatile std::sig_atomic_t stop_signal_seen = 0;
volatile std::sig_atomic_t save_wanted = 0;
struct sigaction old_int, old_term, old_usr1;

void say(const char* text) {
  const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);
}

void on_stop(int signal) {
  if (stop_signal_seen != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  stop_signal_seen = signal;
  say("\nfinishing this step, saving, then stopping; again to stop at once\n");
}

void on_save(int) { save_wanted = 1; }

}  // namespace

Signals::Signals(bool stop_on_signal) {
  stop_signal_seen = 0;
  save_wanted = 0;
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = stop_on_signal ? on_stop : SIG_DFL;
  sigaction(SIGINT, &action, &old_int);
  sigaction(SIGTERM, &action, &old_term);
  action.sa_handler = on_save;
  sigaction(SIGUSR1, &action, &old_usr1);
}

Signals::~Signals() {
  sigaction(SIGINT, &old_int, nullptr);
  sigaction(SIGTERM, &old_term, nullptr);
  sigaction(SIGUSR1, &old_usr1, nullptr);
}

int Signals::stop_signal() const { return stop_signal_seen; }

bool Signals::take_save_request() {
  const bool wanted = save_wanted != 0;
  if (wanted) save_wanted = 0;
  return wanted;
}

}  // namespace dz::train
