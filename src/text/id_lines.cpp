#include "text/id_lines.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "text/edits.h"
#include "text/json_line.h"
#include "text/unicode.h"

namespace dz::text {
namespace {

constexpr int64_t kMaxLine = int64_t{1} << 30;
constexpr size_t kBlock = size_t{1} << 16;
constexpr std::string_view kBlanks = " ,\t\r";
constexpr const char* kAnId = "a whole number from 0 below 2^31";

// Collects small pieces of output and hands them on in blocks.
class Blocks {
 public:
  explicit Blocks(const Sink& sink) : sink_(sink) {}
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(block_), format, std::forward<Args>(args)...);
    if (block_.size() >= kBlock) flush();
  }
  void flush() {
    sink_({block_.data(), block_.size()});
    block_.clear();
  }

 private:
  const Sink& sink_;
  fmt::memory_buffer block_;
};

std::string bytes_of_hex(std::string_view hex, const std::string& where) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1; };
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit(hex[i]);
    const int low = i + 1 < hex.size() ? digit(hex[i + 1]) : -1;
    if (high < 0 || low < 0) {
      throw DataError(Complaint{.where = where + ": bytes_hex",
                                .found = fmt::format("\"{}\" at character {}", hex.substr(i, 2), i),
                                .expected = "two hexadecimal digits a byte",
                                .hint = ""});
    }
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

std::vector<int32_t> ids_of_json(std::string_view line, const std::string& where) {
  using nlohmann::json;
  const json root = json::parse(line, nullptr, false);
  if (!root.is_object()) throw DataError(Complaint{.where = where, .found = "no JSON object", .expected = "one JSON object a line", .hint = ""});
  const auto items = root.find("ids");
  if (items == root.end() || !items->is_array())
    throw DataError(
        Complaint{.where = where + ": ids", .found = items == root.end() ? "no such field" : "no list", .expected = "[1, 2, ..]", .hint = ""});
  std::vector<int32_t> ids;
  ids.reserve(items->size());
  for (const json& item : *items) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > INT32_MAX) {
      throw DataError(Complaint{.where = fmt::format("{}: ids[{}]", where, ids.size()),
                                .found = item.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40),
                                .expected = kAnId,
                                .hint = ""});
    }
    ids.push_back(item.get<int32_t>());
  }
  return ids;
}

std::vector<int32_t> ids_of_numbers(std::string_view line, const std::string& where) {
  std::vector<int32_t> ids;
  for (size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos; at = line.find_first_not_of(kBlanks, at)) {
    const std::string_view word = line.substr(at, line.find_first_of(kBlanks, at) - at);
    int32_t id = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size() || id < 0) {
      throw DataError(Complaint{.where = fmt::format("{}: id {}", where, ids.size()),
                                .found = nlohmann::json(word.substr(0, 40)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace),
                                .expected = kAnId,
                                .hint = "ids with blanks or commas between them, or {\"ids\": [..]}"});
    }
    ids.push_back(id);
    at += word.size();
  }
  return ids;
}

}  // namespace

struct LineEncoder::State {
  State(const Tokenizer& of, EncodeLinesOptions with)
      : tokenizer(of), options(with), encoder(of), texts({.field = "text", .hint = ""}), hexes({.field = "bytes_hex", .hint = ""}) {}

  // The bytes that the line holds.
  std::string bytes(std::string_view line, const std::string& where, int64_t& replaced) {
    std::string text;
    std::string id;
    if (line.find("\"bytes_hex\"") != std::string_view::npos) {
      hexes.parse(std::string(line), where, text, id, replaced);
      return bytes_of_hex(text, where);
    }
    texts.parse(std::string(line), where, text, id, replaced);
    return text;
  }

  const Tokenizer tokenizer;
  EncodeLinesOptions options;
  Encoder encoder;
  JsonLineParser texts;
  JsonLineParser hexes;
  std::vector<int32_t> ids;
  std::vector<Span> spans;
  std::string valid;
  Edits edits;
};

LineEncoder::LineEncoder(const Tokenizer& tokenizer, EncodeLinesOptions options) : state_(std::make_unique<State>(tokenizer, options)) {}
LineEncoder::~LineEncoder() = default;

int64_t LineEncoder::encode(std::string_view line, const std::string& where, const Sink& sink) {
  State& state = *state_;
  int64_t ill_formed = 0;
  const std::string bytes = state.bytes(line, where, ill_formed);
  const bool replaced = replace_invalid_utf8(bytes, state.valid, state.edits);
  const std::string_view text = replaced ? state.valid : bytes;
  std::vector<int32_t>& ids = state.ids;
  std::vector<Span>& spans = state.spans;
  ids.clear();
  spans.clear();
  const auto around = [&](const std::vector<int32_t>& added) {
    if (!state.options.special_around) return;
    ids.insert(ids.end(), added.begin(), added.end());
    const int64_t place = spans.empty() ? 0 : static_cast<int64_t>(text.size());
    if (state.options.offsets) spans.resize(ids.size(), {place, place});
  };
  around(state.tokenizer.template_in_front());
  if (state.options.offsets)
    state.encoder.encode(text, state.options.special, ids, spans);
  else
    state.encoder.encode(text, state.options.special, ids);
  around(state.tokenizer.template_behind());

  Blocks out(sink);
  out.add("{{\"ids\": [");
  for (size_t i = 0; i < ids.size(); ++i) out.add("{}{}", i ? ", " : "", ids[i]);
  if (state.options.offsets) {
    const auto origin = [&](int64_t place) { return replaced ? state.edits.origin(static_cast<size_t>(place)) : static_cast<size_t>(place); };
    out.add("], \"offsets\": [");
    for (size_t i = 0; i < spans.size(); ++i) out.add("{}[{}, {}]", i ? ", " : "", origin(spans[i].begin), origin(spans[i].end));
  }
  out.add("]}}\n");
  out.flush();
  return ill_formed;
}

std::vector<int32_t> parse_ids(std::string_view line, const std::string& where) {
  const size_t first = line.find_first_not_of(kBlanks);
  return first != std::string_view::npos && line[first] == '{' ? ids_of_json(line, where) : ids_of_numbers(line, where);
}

std::vector<std::vector<int32_t>> read_id_lines(const fs::path& path) {
  if (File::open_read(path).size() == 0) return {};  // says what is wrong with the path
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw InputError(Complaint{path.string(), std::strerror(errno), "a file of ids, a sequence a line", ""});
  std::vector<std::vector<int32_t>> sequences;
  for_each_line(file.get(), path.string(), [&](std::string_view line, const std::string& where) { sequences.push_back(parse_ids(line, where)); });
  return sequences;
}

void decode_line(const Tokenizer& tokenizer, bool skip_special, std::string_view line, const std::string& where, const Sink& sink) {
  const std::vector<int32_t> ids = ids_of_json(line, where);
  sink("{\"text\": ");
  sink(nlohmann::json(tokenizer.decode(ids, skip_special)).dump());
  sink("}\n");
}

void for_each_line(std::FILE* file, const std::string& name, const std::function<void(std::string_view, const std::string&)>& each) {
  std::string line;
  std::vector<char> block(kBlock);
  int64_t number = 1;
  const auto finish = [&] {
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (line.find_first_not_of(" \t\r") != std::string::npos) each(line, fmt::format("{}:{}", name, number));
    line.clear();
    ++number;
  };
  while (const size_t count = std::fread(block.data(), 1, block.size(), file)) {
    std::string_view rest(block.data(), count);
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      line += rest.substr(0, end);
      rest.remove_prefix(end + 1);
      finish();
    }
    line += rest;
    if (static_cast<int64_t>(line.size()) > kMaxLine)
      throw DataError(Complaint{.where = fmt::format("{}:{}", name, number), .found = "a line above 1 GiB", .expected = "shorter ones", .hint = ""});
  }
  if (std::ferror(file)) throw IoError(name + ": reading failed: " + std::strerror(errno));
  finish();
}

}  // namespace dz::text
