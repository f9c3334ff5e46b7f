#include "data/tokenize.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "data/background_thread.h"
#include "data/special_text.h"
#include "data/token_writer.h"
#include "data/tokenize_state.h"

namespace dz::data {
namespace {

using Clock = std::chrono::steady_clock;

// Raised when the same text and options give other shards than before.
constexpr int kRules = 1;

std::string inputs_digest(const std::vector<TextSource>& sources, const std::vector<text::InputFiles>& inputs) {
  Sha256 hash;
  for (size_t i = 0; i < sources.size(); ++i) {
    hash.update(fmt::format("source {}\n{}\n", sources[i].name, inputs[i].skipped));
    for (const text::InputFile& file : inputs[i].files)
      hash.update(fmt::format("{}{}{} {} {}\n", file.path, '\0', static_cast<int>(file.format), file.bytes, file.modified));
  }
  return hash.hex();
}

std::string options_digest(const TokenizeSettings& s, int32_t eos) {
  return sha256_hex(
      fmt::format("rules {} version {} held out {} field {}{}id {}{} strip {} skip {} most {} special {} eos {} bos {} shard {} whole {}", kRules,
                  DZ_VERSION, s.held_out, s.extract.field, '\0', s.extract.id_field, '\0', s.extract.strip, s.extract.skip_bad_lines,
                  s.extract.max_document_bytes, static_cast<int>(s.special), eos, s.bos.value_or(-1), s.shard_tokens, s.whole_documents));
}

// A batch on its way from reading to writing.
struct Encoded {
  text::Batch batch;
  std::vector<std::vector<int32_t>> ids;
  std::vector<uint64_t> hashes;
  std::vector<SpecialText::Found> special;
};

class Run {
 public:
  Run(const text::Tokenizer& tokenizer, const std::vector<TextSource>& sources, const fs::path& directory, const TokenizeSettings& settings,
      const TokenizeHooks& hooks)
      : settings_(settings),
        hooks_(hooks),
        sources_(sources),
        inputs_(list(sources)),
        eos_(settings.eos ? *settings.eos : tokenizer.end_of_text()),
        special_(tokenizer, eos_),
        pool_(settings.threads),
        writer_(directory, {.vocab_size = tokenizer.vocab_size(),
                            .eos_id = eos_,
                            .bos_id = settings.bos.value_or(-1),
                            .tokenizer_sha256 = tokenizer.sha256(),
                            .tokenizer_json = settings.tokenizer_json,
                            .shard_tokens = settings.shard_tokens,
                            .whole_documents = settings.whole_documents,
                            .fingerprint = {{"tokenizer", tokenizer.sha256()},
                                            {"options", options_digest(settings, eos_)},
                                            {"inputs", inputs_digest(sources, inputs_)}}}),
        held_out_(settings.held_out, nullptr) {
    for (int i = 0; i < settings.threads; ++i) encoders_.emplace_back(tokenizer);
    for (const text::InputFiles& input : inputs_) input_bytes_.push_back(input.bytes);
    total_ = std::accumulate(input_bytes_.begin(), input_bytes_.end(), int64_t{0});
  }

  TokenizeResult run() {
    if (hooks_.notice && !writer_.notice().empty()) hooks_.notice(writer_.notice());
    if (!writer_.note().empty()) state_ = parse_tokenize_state(writer_.note());
    for (int64_t i = 0; i < state_.done; ++i) {
      bytes_before_ += input_bytes_[static_cast<size_t>(i)];
      text_before_ += state_.counts[static_cast<size_t>(i)].text.bytes;
    }
    while (state_.done < static_cast<int64_t>(sources_.size())) add_source();
    TokenizeResult result;
    result.sources = state_.counts;
    result.manifest = writer_.finish(to_json(state_));
    return result;
  }

 private:
  static std::vector<text::InputFiles> list(const std::vector<TextSource>& sources) {
    std::vector<text::InputFiles> inputs;
    for (const TextSource& source : sources) inputs.push_back(text::list_inputs(source.paths));
    return inputs;
  }
  const TextSource& source() const { return sources_[static_cast<size_t>(state_.done)]; }
  TokenizeCounts& counts() { return state_.counts.back(); }

  // Three batches at a time: one is read, one is encoded, one is written.
  void add_source() {
    text::DocumentReader reader(std::move(inputs_[static_cast<size_t>(state_.done)]), settings_.extract);
    begin_source(reader);
    text::Batch next;
    Encoded written;
    // In this order, so that both have come to rest before what they work on is gone.
    BackgroundThread writing, reading;
    const auto read = [&] { next = text::read_batch(reader, settings_.batch_bytes); };
    const auto write_out = [&] { write(written); };
    reading.start(read);
    for (bool last = false; !last;) {
      reading.wait();
      text::Batch batch = std::move(next);
      last = batch.documents.empty();
      if (!last) reading.start(read);
      Encoded encoded = encode(std::move(batch));
      writing.wait();
      written = std::move(encoded);
      writing.start(write_out);
    }
    writing.wait();
    end_source();
  }

  void begin_source(text::DocumentReader& reader) {
    held_out_ = HeldOutChooser(settings_.held_out, [this, &reader](Split split, const std::vector<int32_t>& ids, const DocumentPlace& place) {
      const std::string& path = reader.inputs().files[static_cast<size_t>(place.file)].path;
      writer_.append(source().name, split, ids, {.id = place.id, .src = path, .loc = place.line});
    });
    if (static_cast<int64_t>(state_.counts.size()) > state_.done) {
      reader.seek(state_.position, counts().text);
      held_out_.restore(state_.held_out);
      show(reader.input_bytes());
    } else {
      state_.counts.emplace_back();
      counts().name = source().name;
    }
  }

  Encoded encode(text::Batch batch) {
    Encoded out{.batch = std::move(batch), .ids = {}, .hashes = {}, .special = {}};
    const std::vector<text::Document>& documents = out.batch.documents;
    out.ids.resize(documents.size());
    out.hashes.resize(documents.size());
    out.special.resize(documents.size());
    std::atomic<size_t> next = 0;
    pool_.parallel_for(settings_.threads, [&](int64_t slot) {
      for (size_t i = next++; i < documents.size(); i = next++) {
        encoders_[static_cast<size_t>(slot)].encode(documents[i].text, settings_.special, out.ids[i]);
        out.hashes[i] = held_out_hash(documents[i].text);
        out.special[i] = special_.find(documents[i].text);
      }
    });
    return out;
  }

  void write(const Encoded& item) {
    for (size_t i = 0; i < item.ids.size(); ++i) {
      const text::Document& document = item.batch.documents[i];
      counts().documents_with_special_text += item.special[i].any;
      counts().documents_with_eos_text += item.special[i].eos;
      held_out_.add(item.hashes[i], item.ids[i], {.id = document.id, .file = document.file, .line = document.line});
    }
    counts().text = item.batch.counts;
    state_.position = item.batch.end;
    if (item.ids.empty()) return;
    maybe_commit();
    show(item.batch.input_bytes);
  }

  void maybe_commit() {
    if (Clock::now() - last_commit_ < std::chrono::duration<double>(settings_.commit_seconds)) return;
    if (static_cast<int64_t>(state_.counts.size()) > state_.done) state_.held_out = held_out_.state();
    writer_.commit(to_json(state_));
    last_commit_ = Clock::now();
  }

  void end_source() {
    const text::ExtractCounts& text = counts().text;
    if (text.documents == 0) {
      throw DataError(Complaint{.where = "source " + source().name,
                                .found = fmt::format("no text in {} files ({} of other kinds skipped)", text.files, text.skipped_files),
                                .expected = "at least one document",
                                .hint = text.bad_lines > 0 ? text.first_bad.front() : ""});
    }
    held_out_.end();
    writer_.close_source(source().name);
    bytes_before_ += input_bytes_[static_cast<size_t>(state_.done)];
    text_before_ += text.bytes;
    ++state_.done;
    state_.position = {};
    state_.held_out = {};
    held_out_ = HeldOutChooser(settings_.held_out, nullptr);
    maybe_commit();
  }

  void show(int64_t input_bytes) {
    if (!hooks_.progress) return;
    hooks_.progress({.source = source().name,
                     .text_bytes = text_before_ + counts().text.bytes,
                     .input_bytes = bytes_before_ + input_bytes,
                     .input_bytes_total = total_});
  }

  const TokenizeSettings& settings_;
  const TokenizeHooks& hooks_;
  const std::vector<TextSource>& sources_;
  std::vector<text::InputFiles> inputs_;  // those of a source go to its reader
  std::vector<int64_t> input_bytes_;
  int32_t eos_;
  SpecialText special_;
  ThreadPool pool_;
  std::vector<text::Encoder> encoders_;
  TokenShardWriter writer_;
  HeldOutChooser held_out_;  // of the present source
  TokenizeState state_;
  int64_t total_ = 0, bytes_before_ = 0, text_before_ = 0;
  Clock::time_point last_commit_ = Clock::now();
};

}  // namespace

TokenizeResult tokenize(const text::Tokenizer& tokenizer, const std::vector<TextSource>& sources, const fs::path& directory,
                        const TokenizeSettings& settings, const TokenizeHooks& hooks) {
  for (const std::optional<int32_t>& id : {settings.eos, settings.bos})
    DZ_CHECK(!id || (*id >= 0 && *id < tokenizer.vocab_size()), "id", *id, "vocab_size", tokenizer.vocab_size());
  TokenizeResult result = Run(tokenizer, sources, directory, settings, hooks).run();
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
