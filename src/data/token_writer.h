// Writes a token directory (token_shards.h): documents in, token files, their document lists and the manifest out; an attempt that was cut
// off can be continued.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "data/document_rows.h"
#include "data/token_shards.h"

namespace dz::data {

class ShardOutput;

// Shards grow under DIR/.partial and are moved into place at the end, manifest.json last. A directory without a manifest is incomplete by
// definition and refused by readers; running again over an old result or over a killed attempt is safe at any moment.
class TokenShardWriter {
 public:
  // Names and hashes of all that decides the result, such as {"inputs", HEX}. An attempt is continued only under an equal one.
  using Fingerprint = std::vector<std::pair<std::string, std::string>>;

  struct Settings {
    int64_t vocab_size = 0;  // at most 2^31
    int64_t eos_id = 0;
    int64_t bos_id = -1;  // -1: none
    std::string tokenizer_sha256;
    std::string tokenizer_json;                // kept as DIR/tokenizer.json, so that shards and checkpoints carry their tokenizer; may be empty
    int64_t shard_tokens = int64_t{64} << 20;  // at most, in a file
    bool whole_documents = false;              // a document that does not fit starts the next file; otherwise it goes on there
    int64_t chunk_bytes = kChunkBytes;
    Fingerprint fingerprint;  // empty: no attempt is ever continued
  };
  // CreateError when `directory` holds something that is not a token directory, or cannot be written; TryAgainError when another process is
  // writing it.
  TokenShardWriter(const fs::path& directory, Settings settings);
  ~TokenShardWriter();  // without finish(): removes what was written, but not what was committed
  TokenShardWriter(const TokenShardWriter&) = delete;
  TokenShardWriter& operator=(const TokenShardWriter&) = delete;

  // What the constructor found of an earlier attempt: the note of its last commit(), empty when it starts from nothing. `all_written` when
  // only finish() is left to do. `notice` tells a person, and is empty when nothing was there.
  const std::string& note() const { return note_; }
  bool all_written() const { return all_written_; }
  const std::string& notice() const { return notice_; }

  // One document, without BOS or EOS: BOS is put in front unless it begins with it, one EOS behind unless it ends with it (a single token
  // is not both). An empty document adds nothing. Sources keep the order of their first document. DataError: an id outside [0, vocab_size),
  // an unusable source name, or a document that is too long for whole_documents.
  void append(std::string_view source, Split split, std::span<const int32_t> ids, const DocumentOrigin& origin = {});
  // No document of this source comes any more.
  void close_source(std::string_view source);
  // All that was appended is on the disk, and a writer of the same fingerprint goes on from here with this note.
  void commit(const std::string& note);
  TokenManifest finish(const std::string& note = "");

 private:
  struct Open;
  Open& open(std::string_view source, Split split);
  std::unique_ptr<Open> make_open(size_t source, Split split) const;
  ShardOutput& output(Open& out);
  void end_shard(Open& out);

  // token_writer_state.cpp
  void lock();
  void find_attempt();
  bool restore();
  void check_files() const;
  void clear_partial();
  void write_state(const std::string& note) const;
  std::vector<std::string> files_to_replace() const;
  bool is_in_place() const;
  void move_into_place();
  void clean_up();

  fs::path directory_, partial_;
  Settings settings_;
  TokenManifest manifest_;
  std::map<std::pair<size_t, size_t>, std::unique_ptr<Open>> open_;
  std::vector<int32_t> document_;      // the present one with its BOS and EOS
  std::vector<fs::path> superseded_;   // to be removed after the next commit
  std::vector<std::string> replaces_;  // files of an older result in the directory
  std::string note_, notice_;
  int lock_ = -1;
  bool committed_ = false, all_written_ = false, in_place_ = false, moving_ = false;
};

}  // namespace dz::data
