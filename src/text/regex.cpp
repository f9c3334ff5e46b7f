#define PCRE2_CODE_UNIT_WIDTH 8

#include "text/regex.h"

#include <fmt/format.h>
#include <pcre2.h>
#include <time.h>

#include "base/check.h"
#include "base/error.h"
#include "text/edits.h"
#include "text/regex_translate.h"
#include "text/unicode.h"

namespace dz::text {
namespace {

template <class Type, void (*kFree)(Type*)>
struct Deleter {
  void operator()(Type* object) const { kFree(object); }
};
using Code = std::unique_ptr<pcre2_code, Deleter<pcre2_code, pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data, pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context, pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Deleter<pcre2_jit_stack, pcre2_jit_stack_free>>;

std::string message_of(int error) {
  PCRE2_UCHAR buffer[200];
  pcre2_get_error_message(error, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

// A match needs a stack and a place for its result; one of each for a thread.
struct Workplace {
  MatchData data{pcre2_match_data_create(1, nullptr)};
  JitStack stack{pcre2_jit_stack_create(32 << 10, Regex::kMaxStack, nullptr)};
  MatchContext context{pcre2_match_context_create(nullptr)};

  Workplace() {
    DZ_CHECK(data && context);
    pcre2_set_match_limit(context.get(), Regex::kMaxSteps);
    pcre2_set_heap_limit(context.get(), static_cast<uint32_t>(Regex::kMaxStack >> 10));
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

Workplace& workplace() {
  thread_local Workplace place;
  return place;
}

double processor_seconds() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The clock is looked at between attempts, and not at each: a single one is bounded by its steps.
class Patience {
 public:
  explicit Patience(size_t bytes) : seconds_(Regex::kMaxSeconds + static_cast<double>(bytes) * 1e-6) {}
  bool over() {
    if (++attempts_ % 64 != 0) return false;
    if (start_ == 0) start_ = processor_seconds();
    return processor_seconds() - start_ > seconds_;
  }

 private:
  double seconds_;
  int64_t attempts_ = 0;
  double start_ = 0;
};

}  // namespace

struct Regex::State {
  std::string where;
  Code code;
};

Regex::Regex(std::string_view pattern, const std::string& where) : state_(std::make_unique<State>()) {
  const std::string translated = translate_regex(pattern, where);
  state_->where = where;
  int error = 0;
  size_t offset = 0;
  // Anchored: the search from place to place is ours, so that it can be stopped.
  constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE;
  state_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), kOptions, &error, &offset, nullptr));
  if (!state_->code) {
    throw DataError(Complaint{.where = where,
                              .found = fmt::format("the pattern \"{}\": {}", pattern.substr(0, 80), message_of(error)),
                              .expected = "one that PCRE2 takes",
                              .hint = ""});
  }
  pcre2_jit_compile(state_->code.get(), PCRE2_JIT_COMPLETE);  // where there is no JIT, the same matches take longer
}

Regex::~Regex() = default;

void Regex::find_valid(std::string_view text, std::vector<TextMatch>& matches) const {
  Workplace& place = workplace();
  Patience patience(text.size());
  const auto limit = [&](const std::string& what) {
    throw DataError(Complaint{.where = state_->where,
                              .found = fmt::format("a text of {} bytes on which the pattern needs more", text.size()),
                              .expected = "at most " + what,
                              .hint = "cut the text, or take a pattern that tries fewer ways"});
  };
  size_t last_end = std::string_view::npos;
  for (size_t at = 0; at <= text.size();) {
    if (patience.over()) limit(fmt::format("{} s of processor time and one for each MB", kMaxSeconds));
    const int result = pcre2_match(state_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, PCRE2_NO_UTF_CHECK,
                                   place.data.get(), place.context.get());
    if (result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_DEPTHLIMIT) limit(fmt::format("{} steps a match", kMaxSteps));
    if (result == PCRE2_ERROR_JIT_STACKLIMIT || result == PCRE2_ERROR_HEAPLIMIT) limit(fmt::format("{} MiB of memory a match", kMaxStack >> 20));
    if (result < 0 && result != PCRE2_ERROR_NOMATCH) limit("what the engine allows: " + message_of(result));
    if (result >= 0) {
      const size_t end = pcre2_get_ovector_pointer(place.data.get())[1];
      if (end > at || last_end != at) {
        matches.push_back({at, end});
        last_end = end;
        if (end > at) {
          at = end;
          continue;
        }
      }
    }
    at += at < text.size() ? decode_utf8(text, at).size : 1;
  }
}

void Regex::find_all(std::string_view text, std::vector<TextMatch>& matches) const {
  matches.clear();
  std::string shadow;
  Edits edits;
  if (!replace_invalid_utf8(text, shadow, edits)) return find_valid(text, matches);
  find_valid(shadow, matches);
  for (TextMatch& match : matches) match = {edits.origin(match.begin), edits.origin(match.end)};
}

}  // namespace dz::text
