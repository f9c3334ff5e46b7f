#include "track/html.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace dz::track {
namespace {

TEST(Html, EscapesWhatEndsOrStartsMarkup) {
  EXPECT_EQ(escape_html("</pre><script>x('1' & \"2\")"), "&lt;/pre&gt;&lt;script&gt;x(&#39;1&#39; &amp; &quot;2&quot;)");
  EXPECT_EQ(escape_html("plain text, é and\ttab\n"), "plain text, é and\ttab\n");
}

TEST(Html, ReplacesWhatIsNotUtf8) {
  struct Case {
    std::string_view bytes, clean;
  };
  const Case kCases[] = {
      {"caf\xC3\xA9", "caf\xC3\xA9"},
      {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
      {"\xFF", "\xEF\xBF\xBD"},
      {"a\xC3", "a\xEF\xBF\xBD"},                                // cut off
      {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},                  // overlong '/'
      {"\xE0\x80\xBC", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},  // overlong '<'
      {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},  // a surrogate
      {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {std::string_view("\x00\x1B\r", 3), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
  };
  for (const Case& c : kCases) EXPECT_EQ(clean_utf8(c.bytes), c.clean);
}

TEST(Html, JsonInAScriptHoldsNoTag) {
  const std::string safe = escape_json_for_script(R"({"a":"</script><!--"})");
  EXPECT_EQ(safe.find('<'), std::string::npos);
  EXPECT_EQ(safe, R"({"a":"\u003c/script>\u003c!--"})");
}

TEST(Html, FillsOnceAndOnlyKnownNames) {
  EXPECT_EQ(fill("<{{a}}|{{b}}|{{a}}>", {{"a", "{{b}}"}, {"b", "2"}}), "<{{b}}|2|{{b}}>");
  EXPECT_THROW(fill("{{c}}", {{"a", ""}}), BugError);
}

}  // namespace
}  // namespace dz::track
