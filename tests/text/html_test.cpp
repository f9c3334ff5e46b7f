#include "text/html.h"

#include <gtest/gtest.h>

#include "text/golden.h"

namespace dz::text {
namespace {

std::string strip(const std::string& page) {
  int64_t replaced = 0;
  return html_text(page, replaced);
}

struct Case {
  const char* page;
  const char* text;
};

const Case kCases[] = {
    {"", ""},
    {"plain", "plain\n"},
    {"<p>a  b\n c</p><p>d</p>", "a b c\n\nd\n"},
    {"one<br>two<br/>three", "one\ntwo\nthree\n"},
    {"<ul><li>x<li>y</ul>", "x\ny\n"},
    {"<table><tr><td>1<td>2<tr><td>3</table>", "1 2\n3\n"},
    {"<h1>T</h1>text<b>bo</b>ld", "T\n\ntextbold\n"},
    {"<pre>\n  x\n    y\n</pre>z", "  x\n    y\n\nz\n"},
    {"a<script>if (a < b && c > d) { '</p>' }</SCRIPT>b<style>p { }</style>c", "abc\n"},
    {"a<!-- <p> -- > --> b", "a b\n"},
    {"<!DOCTYPE html><?xml version='1.0'?>x", "x\n"},
    {"<a href=\"x>y\" title='>'>link</a>", "link\n"},
    {"1 < 2 and 3<4 <", "1 < 2 and 3<4 <\n"},
    {"&lt;p&gt; &amp;amp; &quot;&apos;", "<p> &amp; \"'\n"},
    {"caf&eacute; &#233; &#xE9; &#XE9; &hellip; &mdash;", "caf\u00E9 \u00E9 \u00E9 \u00E9 \u2026 \u2014\n"},
    {"&#150; &#0; &#xD800; &#99999999999999999999;", "\u2013 \uFFFD \uFFFD \uFFFD\n"},
    {"&unknown; &amp &; &#; &#x; a&b", "&unknown; &amp &; &#; &#x; a&b\n"},
    {"a&nbsp;b", "a b\n"},
    {"<script>never closed", ""},
    {"text <a href=\"never closed", "text\n"},
    {"<![CDATA[1 < 2]]>", "1 < 2\n"},
    {"<svg><path d='M0'/><text>no</text></svg>yes", "yes\n"},
    {"<script src='x'/>kept", "kept\n"},
};

TEST(Html, TextOfPages) {
  for (const Case& c : kCases) EXPECT_EQ(strip(c.page), c.text) << c.page;
}

TEST(Html, DeclaredLatinAndUtf8) {
  EXPECT_EQ(strip("<meta charset=\"ISO-8859-1\">caf\xE9 \x93q\x94"), "caf\u00E9 \u201Cq\u201D\n");
  EXPECT_EQ(strip("<meta charset=utf-8>caf\u00E9"), "caf\u00E9\n");
  int64_t replaced = 0;
  EXPECT_EQ(html_text("\xEF\xBB\xBF<p>caf\xE9</p>", replaced), "caf\uFFFD\n");
  EXPECT_EQ(replaced, 1);
}

TEST(Html, DamagedPagesGiveSomeText) {
  const std::string page = "<html><head><title>T</title></head><body><p class='a'>x &amp; y<pre> z </pre><!-- c --><script>1</script></body></html>";
  TestRandom random(5);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = page;
    for (int i = 0; i < 3; ++i) bad[random.below(bad.size())] = "<>/!-'\"&;#xP\n\xC3\x80"[random.below(15)];
    const std::string text = strip(bad);
    ASSERT_LE(text.size(), 3 * bad.size() + 1);
  }
}

}  // namespace
}  // namespace dz::text
