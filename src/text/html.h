// The readable text of an HTML page: a forgiving scanner, no tree, linear in the size of the page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dz::text {

// `page`: bytes of the file, UTF-8 or, when a meta tag or XML declaration near its start says so, ISO-8859-1 or windows-1252.
// Dropped: tags, comments, and what stands in script, style, template, svg, math and the like. Block elements begin a new line,
// paragraphs and headings leave one blank line, white space collapses except inside pre, entities become characters.
// Ill-formed UTF-8 becomes U+FFFD; `replaced` counts it. Nothing is an error: broken pages lose text at most from the break on.
std::string html_text(std::string page, int64_t& replaced);

// The character of an entity's name without & and ; ("eacute", "hellip"): HTML 4's 252 names and apos.
std::optional<uint32_t> html_entity(std::string_view name);

// The character of a number, with the repairs of the HTML standard: windows-1252 for 0x80 to 0x9F, U+FFFD for what is no character.
uint32_t html_numeric(uint64_t number);

}  // namespace dz::text
