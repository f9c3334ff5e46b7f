#include "data/shard_output.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

namespace dz::data {

static_assert(std::endian::native == std::endian::little, "shards are written as they lie in memory");

namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

template <class Id>
void store(std::span<const int32_t> ids, std::byte* out) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const Id id = static_cast<Id>(ids[i]);
    std::memcpy(out + i * sizeof(Id), &id, sizeof(Id));
  }
}

// Opens for appending what must hold at least `bytes`, and cuts off the rest.
File reopen(const fs::path& path, int64_t bytes) {
  const int64_t size = File::open_read(path).size();
  if (size < bytes) {
    throw DataError(
        Complaint{.where = path.string(), .found = std::to_string(size) + " bytes", .expected = "at least " + std::to_string(bytes), .hint = ""});
  }
  File file = File::append(path);
  file.truncate(bytes);
  return file;
}

// The first `bytes` of a file, one after another.
template <class Body>
void for_each_piece(const fs::path& path, int64_t bytes, Body&& body) {
  const File file = File::open_read(path);
  std::vector<std::byte> block(kBufferBytes);
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(kBufferBytes)) {
    const std::span<std::byte> piece = std::span(block).first(static_cast<size_t>(std::min(static_cast<int64_t>(kBufferBytes), bytes - at)));
    file.read_at(at, piece);
    body(piece);
  }
}

std::string sha256_of(const fs::path& path) {
  Sha256 hash;
  for_each_piece(path, File::open_read(path).size(), [&](std::span<const std::byte> piece) { hash.update(piece); });
  return hash.hex();
}

DataError damaged(const fs::path& path) { return DataError(path.filename().string() + ": its contents are not those that were written"); }

}  // namespace

struct RunningHash::State {
  XXH3_state_t* hash = XXH3_createState();
  ~State() { XXH3_freeState(hash); }
};

RunningHash::RunningHash() : state_(std::make_unique<State>()) { DZ_CHECK(state_->hash && XXH3_128bits_reset(state_->hash) == XXH_OK); }
RunningHash::~RunningHash() = default;

void RunningHash::update(std::span<const std::byte> bytes) { DZ_CHECK(XXH3_128bits_update(state_->hash, bytes.data(), bytes.size()) == XXH_OK); }

std::string RunningHash::hex() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(state_->hash);
  return Digest128{.high = digest.high64, .low = digest.low64}.hex();
}

void check_sha256(const fs::path& path, const std::string& expected) {
  if (sha256_of(path) != expected) throw damaged(path);
}

ChunkedHash::ChunkedHash(int64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

void ChunkedHash::update(std::span<const std::byte> bytes) {
  whole_.update(bytes);
  while (!bytes.empty()) {
    if (!chunk_) chunk_ = std::make_unique<Sha256>();
    const auto take = static_cast<size_t>(std::min(chunk_bytes_ - in_chunk_, static_cast<int64_t>(bytes.size())));
    chunk_->update(bytes.first(take));
    bytes = bytes.subspan(take);
    in_chunk_ += static_cast<int64_t>(take);
    if (in_chunk_ < chunk_bytes_) continue;
    done_.push_back(chunk_->hex());
    chunk_.reset();
    in_chunk_ = 0;
  }
}

std::string ChunkedHash::hex() { return whole_.hex(); }

std::vector<std::string> ChunkedHash::chunks() {
  if (chunk_) done_.push_back(chunk_->hex());
  chunk_.reset();
  return std::move(done_);
}

ShardOutput::ShardOutput(Place place) : place_(std::move(place)), hash_(place_.chunk_bytes) {
  file_ = File::create(tokens_path());
  rows_ = File::create(rows_path());
}

ShardOutput::ShardOutput(Place place, const Synced& synced)
    : place_(std::move(place)), tokens_(synced.tokens), row_bytes_(synced.row_bytes), hash_(place_.chunk_bytes) {
  const int64_t bytes = tokens_ * size_of(place_.type);
  file_ = reopen(tokens_path(), bytes);
  rows_ = reopen(rows_path(), row_bytes_);
  for_each_piece(tokens_path(), bytes, [&](std::span<const std::byte> piece) {
    hash_.update(piece);
    tokens_hash_.update(piece);
  });
  if (tokens_hash_.hex() != synced.tokens_hash) throw damaged(tokens_path());
  for_each_piece(rows_path(), row_bytes_, [&](std::span<const std::byte> piece) { rows_hash_.update(piece); });
  if (rows_hash_.hex() != synced.rows_hash) throw damaged(rows_path());
}

void ShardOutput::put(std::span<const int32_t> ids) {
  const auto width = static_cast<size_t>(size_of(place_.type));
  tokens_ += static_cast<int64_t>(ids.size());
  while (!ids.empty()) {
    const std::span<const int32_t> piece = ids.first(std::min(ids.size(), kBufferBytes / width));
    const size_t begin = buffer_.size();
    buffer_.resize(begin + piece.size() * width);
    place_.type == TokenType::kUint16 ? store<uint16_t>(piece, buffer_.data() + begin) : store<uint32_t>(piece, buffer_.data() + begin);
    if (buffer_.size() >= kBufferBytes) flush();
    ids = ids.subspan(piece.size());
  }
}

void ShardOutput::put_row(int64_t start, int64_t end, const DocumentOrigin& origin) {
  const std::string row = document_row(start, end, origin);
  row_buffer_ += row;
  row_bytes_ += static_cast<int64_t>(row.size());
  if (row_buffer_.size() >= kBufferBytes) flush();
}

void ShardOutput::flush() {
  file_.write(buffer_);
  hash_.update(buffer_);
  tokens_hash_.update(buffer_);
  buffer_.clear();
  rows_.write(row_buffer_);
  rows_hash_.update(std::as_bytes(std::span(row_buffer_)));
  row_buffer_.clear();
}

ShardOutput::Synced ShardOutput::sync() {
  flush();
  file_.sync();
  rows_.sync();
  return {.tokens = tokens_, .row_bytes = row_bytes_, .tokens_hash = tokens_hash_.hex(), .rows_hash = rows_hash_.hex()};
}

ShardFile ShardOutput::close() {
  flush();
  file_.sync();
  file_.close();
  rows_.close();
  const fs::path packed = place_.directory / (place_.stem + ".csv.gz");
  gzip_file(rows_path(), packed);
  return {.path = tokens_path().filename().string(),
          .tokens = tokens_,
          .sha256 = hash_.hex(),
          .chunks = hash_.chunks(),
          .documents_path = packed.filename().string(),
          .documents_sha256 = sha256_of(packed)};
}

}  // namespace dz::data
