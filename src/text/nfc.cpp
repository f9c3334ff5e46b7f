#include "text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "text/unicode.h"

namespace dz::text {
namespace {

const CodePointSet& triggers() {
  static const CodePointSet set(nfc_trigger_ranges());
  return set;
}

const CodePointSet& bases() {
  static const CodePointSet set(nfc_base_ranges());
  return set;
}

bool is_trigger(uint32_t c) { return c >= 0x300 && c != kInvalid && triggers().contains(c); }
bool is_base(uint32_t c) { return c != kInvalid && bases().contains(c); }

// Marks in the order of their classes; marks of one class keep theirs. (utf8proc sorts too, but in a time that is quadratic in the marks.)
void sort_marks(std::vector<utf8proc_int32_t>& points) {
  const auto mark_class = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (auto begin = points.begin(); begin != points.end();) {
    if (mark_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, points.end(), [&](utf8proc_int32_t c) { return mark_class(c) == 0; });
    std::stable_sort(begin, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) { return mark_class(a) < mark_class(b); });
    begin = end;
  }
}

// A run of triggers with its base, all of them well-formed: decomposed, sorted, composed.
void append_normalized(std::string_view run, std::vector<utf8proc_int32_t>& points, std::string& out) {
  constexpr auto kDecompose = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  points.clear();
  for (size_t i = 0; i < run.size();) {
    const CodePoint c = decode_utf8(run, i);
    utf8proc_int32_t parts[8];  // the longest canonical decomposition has 4
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.value), parts, std::size(parts), kDecompose, &boundary);
    DZ_CHECK(count > 0 && count <= static_cast<utf8proc_ssize_t>(std::size(parts)));
    points.insert(points.end(), parts, parts + count);
    i += c.size;
  }
  sort_marks(points);
  const utf8proc_ssize_t count = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()), kCompose);
  DZ_CHECK(count > 0);
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(static_cast<uint32_t>(points[static_cast<size_t>(i)]), out);
}

}  // namespace

bool normalize_nfc(std::string_view text, std::string& out, Edits& edits) {
  bool changed = false;
  size_t copied = 0;    // of `text`, into `out`
  size_t previous = 0;  // where the character before `i` begins
  uint32_t previous_value = kInvalid;
  std::vector<utf8proc_int32_t> points;
  std::string normal;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (!is_trigger(c.value)) {
      previous = i;
      previous_value = c.value;
      i += c.size;
      continue;
    }
    const size_t begin = previous_value != kInvalid && is_base(previous_value) ? previous : i;
    while (i < text.size()) {
      const CodePoint next = decode_utf8(text, i);
      if (!is_trigger(next.value)) break;
      i += next.size;
    }
    previous_value = kInvalid;  // what follows is no trigger, and looks for no base
    const std::string_view run = text.substr(begin, i - begin);
    normal.clear();
    append_normalized(run, points, normal);
    if (normal == run) continue;
    if (!changed) {
      changed = true;
      out.clear();
      edits.clear();
    }
    out.append(text, copied, begin - copied);
    edits.add(out.size(), normal.size(), begin, run.size());
    out += normal;
    copied = i;
  }
  if (changed) out.append(text, copied);
  return changed;
}

}  // namespace dz::text
