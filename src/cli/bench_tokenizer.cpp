// deltazero bench tokenizer: text to ids.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "cli/bench.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace dz::cli {
namespace {

struct Options {
  std::string tokenizer;
  std::string input;
  int threads = 1;
  double seconds = 3;
  bool json = false;
};

constexpr size_t kDocumentBytes = 20000;

// Bytes of the line end at `i`, 0 when there is none: those of Python's str.splitlines, which the yardsticks cut with.
size_t line_end(std::string_view text, size_t i) {
  const char c = text[i];
  if (c == '\r') return text.substr(i).starts_with("\r\n") ? 2 : 1;
  if ((c >= '\n' && c <= '\f') || (c >= '\x1C' && c <= '\x1E')) return 1;
  if (text.substr(i).starts_with("\xC2\x85")) return 2;
  return text.substr(i).starts_with("\xE2\x80\xA8") || text.substr(i).starts_with("\xE2\x80\xA9") ? 3 : 0;
}

// The text cut at line ends into documents of at least kDocumentBytes; the last one is what is left.
std::vector<std::string_view> cut_documents(std::string_view text) {
  std::vector<std::string_view> documents;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t ending = line_end(text, i);
    i += std::max<size_t>(ending, 1);
    if (ending == 0 || i - begin < kDocumentBytes) continue;
    documents.push_back(text.substr(begin, i - begin));
    begin = i;
  }
  if (begin < text.size()) documents.push_back(text.substr(begin));
  return documents;
}

struct Rates {
  double best = 0;            // MB/s by the clock
  double best_processor = 0;  // MB per second of one processor
  int64_t tokens = 0;         // of one round
  int64_t rounds = 0;
};

class Bench {
 public:
  Bench(const text::Tokenizer& tokenizer, int threads) : pool_(threads), ids_(static_cast<size_t>(threads)) {
    for (int i = 0; i < threads; ++i) encoders_.emplace_back(tokenizer);
  }

  // Whole rounds over all documents until `seconds` have passed.
  Rates run(const std::vector<std::string_view>& documents, int64_t bytes, double seconds) {
    Rates rates;
    const Stopwatch all;
    while (rates.rounds == 0 || all.seconds() < seconds) {
      const Stopwatch clock;
      const double processor = processor_seconds();
      rates.tokens = round(documents);
      rates.best = std::max(rates.best, static_cast<double>(bytes) * 1e-6 / clock.seconds());
      rates.best_processor = std::max(rates.best_processor, static_cast<double>(bytes) * 1e-6 / (processor_seconds() - processor));
      ++rates.rounds;
    }
    return rates;
  }

 private:
  int64_t round(const std::vector<std::string_view>& documents) {
    std::atomic<size_t> next = 0;
    std::atomic<int64_t> tokens = 0;
    pool_.parallel_for(pool_.threads(), [&](int64_t slot) {
      std::vector<int32_t>& ids = ids_[static_cast<size_t>(slot)];
      int64_t count = 0;
      for (size_t i = next++; i < documents.size(); i = next++) {
        ids.clear();
        encoders_[static_cast<size_t>(slot)].encode(documents[i], text::SpecialTokens::kParsed, ids);
        count += static_cast<int64_t>(ids.size());
      }
      tokens += count;
    });
    return tokens;
  }

  ThreadPool pool_;
  std::vector<text::Encoder> encoders_;
  std::vector<std::vector<int32_t>> ids_;
};

void run(const Options& options) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(options.tokenizer);
  std::string text = read_file(options.input);
  text::replace_invalid_utf8(text);
  if (text.empty()) throw DataError(Complaint{.where = options.input, .found = "no text", .expected = "some megabytes of it", .hint = ""});
  const std::vector<std::string_view> documents = cut_documents(text);
  const auto bytes = static_cast<int64_t>(text.size());
  const Rates rates = Bench(tokenizer, options.threads).run(documents, bytes, options.seconds);
  if (options.json) {
    const nlohmann::json record = {{"unit", "MB/s"},
                                   {"threads", options.threads},
                                   {"encode", rates.best},
                                   {"tokens", rates.tokens},
                                   {"encode_per_processor", rates.best_processor},
                                   {"bytes", bytes},
                                   {"rounds", rates.rounds},
                                   {"documents", documents.size()},
                                   {"tokenizer_sha256", tokenizer.sha256()}};
    fmt::print("{}\n", record.dump());
    return;
  }
  fmt::print("encode  {:.1f} MB/s on {} threads (best of {} rounds; {:.1f} MB per second of one processor)\n", rates.best, options.threads,
             rates.rounds, rates.best_processor);
  fmt::print("text    {} bytes in {} documents, {} tokens, {:.3f} bytes/token\n", bytes, documents.size(), rates.tokens,
             static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(rates.tokens, 1)));
}

}  // namespace

void add_bench_tokenizer(CLI::App& bench) {
  CLI::App* part = bench.add_subcommand("tokenizer", "text to ids, in documents of 20 kB");
  auto options = std::make_shared<Options>();
  part->add_option("--tokenizer", options->tokenizer, "tokenizer.json")->required();
  part->add_option("--input", options->input, "a text file of some megabytes")->required();
  part->add_option("--threads", options->threads, "threads, each on whole documents")->check(CLI::Range(1, 1024))->capture_default_str();
  part->add_option("--seconds", options->seconds, "how long, in whole rounds over the file")->check(seconds_in_an_hour)->capture_default_str();
  part->add_flag("--json", options->json, "one line of JSON");
  part->footer("MB are 10^6 bytes of UTF-8. The best round counts. Close other programs before comparing.");
  part->callback([options] { run(*options); });
}

}  // namespace dz::cli
