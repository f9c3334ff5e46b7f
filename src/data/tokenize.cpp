#include "data/tokenize.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "text/corpus.h"

namespace dz::data {
namespace {

// Own to this choice, so that nothing else that hashes documents picks the same ones.
constexpr uint64_t kHeldOutSeed = 0x68656C646F757401;

// Keeps back the document of lowest hash as long as nothing is held out by the share.
class Waiting {
 public:
  using Ids = std::vector<int32_t>;

  bool takes(uint64_t hash) const { return documents_.empty() || hash <= hash_; }
  // Equal documents have equal hashes and wait together. The documents that no longer wait come back.
  std::vector<Ids> put(uint64_t hash, const Ids& ids) {
    std::vector<Ids> released;
    if (hash != hash_) released = std::exchange(documents_, {});
    hash_ = hash;
    documents_.push_back(ids);
    return released;
  }
  std::vector<Ids> release() { return std::exchange(documents_, {}); }
  int64_t size() const { return static_cast<int64_t>(documents_.size()); }

 private:
  uint64_t hash_ = 0;
  std::vector<Ids> documents_;
};

class Run {
 public:
  Run(const text::Tokenizer& tokenizer, const fs::path& directory, const TokenizeSettings& settings)
      : settings_(settings),
        special_(tokenizer.special_tokens()),
        pool_(settings.threads),
        writer_(directory, {.vocab_size = tokenizer.vocab_size(),
                            .eos_id = tokenizer.end_of_text(),
                            .tokenizer_sha256 = tokenizer.sha256(),
                            .tokenizer_json = settings.tokenizer_json}) {
    for (int i = 0; i < settings.threads; ++i) encoders_.emplace_back(tokenizer);
  }

  TokenizeCounts add(const TextSource& source, const std::function<void(const std::string&, int64_t)>& progress) {
    TokenizeCounts counts;
    counts.name = source.name;
    int64_t bytes = 0;
    waits_ = settings_.held_out > 0;
    text::DocumentReader reader(source.paths, settings_.extract);
    text::for_each_batch(reader, [&](const std::vector<std::string>& documents) {
      encode(documents);
      for (size_t i = 0; i < documents.size(); ++i) {
        append(source.name, documents[i], ids_[i], counts);
        bytes += static_cast<int64_t>(documents[i].size());
      }
      if (progress) progress(source.name, bytes);
    });
    counts.text = reader.counts();
    if (counts.text.documents == 0) {
      throw DataError(Complaint{.where = "source " + source.name,
                                .found = "no text in " + std::to_string(counts.text.files) + " files (" + std::to_string(counts.text.skipped_files) +
                                         " of other kinds skipped)",
                                .expected = "at least one document",
                                .hint = ""});
    }
    const Split split = waits_ && waiting_.size() < counts.text.documents ? Split::kHeldOut : Split::kTrain;
    for (const std::vector<int32_t>& ids : waiting_.release()) writer_.append(source.name, split, ids);
    return counts;
  }

  TokenManifest finish() { return writer_.finish(); }

 private:
  void encode(const std::vector<std::string>& documents) {
    ids_.resize(documents.size());
    std::atomic<size_t> next = 0;
    pool_.parallel_for(settings_.threads, [&](int64_t slot) {
      for (size_t i = next++; i < documents.size(); i = next++) {
        ids_[i].clear();
        encoders_[static_cast<size_t>(slot)].encode(documents[i], text::SpecialTokens::kLiteral, ids_[i]);
      }
    });
  }

  void append(const std::string& name, const std::string& document, const std::vector<int32_t>& ids, TokenizeCounts& counts) {
    counts.documents_with_special_text +=
        std::any_of(special_.begin(), special_.end(), [&](const std::string& token) { return document.find(token) != std::string::npos; });
    const uint64_t hash = held_out_hash(document);
    const auto train = [&](const std::vector<std::vector<int32_t>>& released) {
      for (const std::vector<int32_t>& item : released) writer_.append(name, Split::kTrain, item);
    };
    if (is_held_out(hash, settings_.held_out)) {
      waits_ = false;
      train(waiting_.release());
      writer_.append(name, Split::kHeldOut, ids);
    } else if (waits_ && waiting_.takes(hash)) {
      train(waiting_.put(hash, ids));
    } else {
      writer_.append(name, Split::kTrain, ids);
    }
  }

  const TokenizeSettings& settings_;
  std::vector<std::string> special_;
  ThreadPool pool_;
  std::vector<text::Encoder> encoders_;
  TokenShardWriter writer_;
  std::vector<std::vector<int32_t>> ids_;  // of the present batch
  Waiting waiting_;                        // of the present source
  bool waits_ = false;                     // nothing of it is held out yet
};

}  // namespace

uint64_t held_out_hash(std::string_view document) { return xxh3_64(std::as_bytes(std::span(document.data(), document.size())), kHeldOutSeed) >> 11; }

bool is_held_out(uint64_t hash, double share) {
  constexpr double kScale = 9007199254740992.0;  // 2^53
  return hash < static_cast<uint64_t>(share * kScale);
}

TokenizeResult tokenize(const text::Tokenizer& tokenizer, const std::vector<TextSource>& sources, const fs::path& directory,
                        const TokenizeSettings& settings, const std::function<void(const std::string&, int64_t)>& progress) {
  Run run(tokenizer, directory, settings);
  TokenizeResult result;
  for (const TextSource& source : sources) result.sources.push_back(run.add(source, progress));
  result.manifest = run.finish();
  for (TokenizeCounts& counts : result.sources) {
    const auto written = std::find_if(result.manifest.sources.begin(), result.manifest.sources.end(),
                                      [&](const Source& source) { return source.name == counts.name; });
    if (written == result.manifest.sources.end()) continue;  // nothing but characters that the tokenizer cannot spell
    for (const Split split : kSplits) {
      counts.documents[static_cast<size_t>(split)] = written->stream(split).documents;
      counts.tokens[static_cast<size_t>(split)] = written->stream(split).tokens;
    }
  }
  return result;
}

}  // namespace dz::data
