// Text that others wrote, made safe for a page. A sample of a model can hold anything: tags, </script>, bytes that are no UTF-8.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace dz::track {

// Replaces what is not UTF-8 (overlong forms and surrogates too) with U+FFFD, one for each bad byte, and control characters
// other than newline and tab with U+FFFD as well: HTML allows none of them.
std::string clean_utf8(std::string_view text);

// clean_utf8, then & < > " ' as entities: safe as element text and inside a quoted attribute.
std::string escape_html(std::string_view text);

// JSON that may stand inside <script>: every < becomes \u003c, so that no tag can begin. `json` must be ASCII or UTF-8.
std::string escape_json_for_script(std::string_view json);

// Fills each {{name}} of `page` with values[name], in one pass: a value that contains {{...}} is not filled again.
// DZ_CHECK: every name of the page is in `values`.
std::string fill(std::string_view page, const std::map<std::string, std::string, std::less<>>& values);

}  // namespace dz::track
