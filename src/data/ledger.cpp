#include "data/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"

namespace dz::data {
namespace {

constexpr std::string_view kMagic = "dz-ledger-1\n";
constexpr int64_t kHeaderBytes = static_cast<int64_t>(kMagic.size()) + 16;
constexpr int64_t kFixedBytes = 16;  // of a record, before its ids
constexpr int64_t kHashBytes = 8;
constexpr int64_t kMostIds = int64_t{1} << 28;  // of a step: a larger count is damage, not a batch

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

template <class T>
T get(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

int bits_of(int64_t instances) { return std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(instances - 1)))); }
int64_t packed_bytes(int64_t count, int bits) { return (count * bits + 7) / 8; }

void pack(std::span<const int64_t> ids, int bits, std::string& out) {
  unsigned __int128 pending = 0;
  int held = 0;
  for (const int64_t id : ids) {
    pending |= static_cast<unsigned __int128>(static_cast<uint64_t>(id)) << held;
    for (held += bits; held >= 8; held -= 8, pending >>= 8) out.push_back(static_cast<char>(pending & 0xFF));
  }
  if (held > 0) out.push_back(static_cast<char>(pending & 0xFF));
}

std::vector<int64_t> unpack(std::string_view bytes, int64_t count, int bits) {
  std::vector<int64_t> ids;
  ids.reserve(static_cast<size_t>(count));
  unsigned __int128 pending = 0;
  int held = 0;
  size_t next = 0;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    for (; held < bits; held += 8) pending |= static_cast<unsigned __int128>(static_cast<uint8_t>(bytes[next++])) << held;
    ids.push_back(static_cast<int64_t>(static_cast<uint64_t>(pending) & mask));
    pending >>= bits;
    held -= bits;
  }
  return ids;
}

uint64_t hash_of(std::string_view record) { return xxh3_64(std::as_bytes(std::span(record.data(), record.size()))); }

std::string header_of(int64_t instances) {
  std::string header(kMagic);
  put(header, instances);
  put(header, hash_of(header));
  return header;
}

[[noreturn]] void refuse(const fs::path& path, int64_t offset, const std::string& found, const std::string& expected) {
  throw DataError(Complaint{.where = fmt::format("{} at byte {}", path.string(), offset),
                            .found = found,
                            .expected = expected,
                            .hint = "the ledger was damaged; moved aside, it does not stop train, and audit names the steps without a record"});
}

// Walks a ledger record by record.
class Reader {
 public:
  explicit Reader(const fs::path& path) : file_(File::open_read(path)), size_(file_.size()) {
    if (size_ < kHeaderBytes) {
      if (size_ == 0) return;
      refuse(path, 0, fmt::format("{} bytes", size_), fmt::format("a header of {} bytes", kHeaderBytes));
    }
    const std::string header = bytes(0, kHeaderBytes);
    instances_ = get<int64_t>(header, kMagic.size());
    if (instances_ < 1 || header != header_of(instances_)) refuse(path, 0, "another header", "that of a ledger (dz-ledger-1)");
    at_ = kHeaderBytes;
  }

  int64_t instances() const { return instances_; }
  int64_t offset() const { return at_; }  // of the record that next() reads
  bool torn() const { return torn_; }

  std::optional<LedgerRecord> next() {
    if (at_ >= size_) return std::nullopt;
    if (at_ + kFixedBytes > size_) return end_torn();
    std::string all = bytes(at_, kFixedBytes);
    LedgerRecord record{.step = get<int64_t>(all, 0), .sequence_length = get<uint32_t>(all, 8), .ids = {}};
    const int64_t count = get<uint32_t>(all, 12);
    if (record.step == 0 && only_zeros()) return end_torn();
    if (record.step < 1 || count > kMostIds) refuse(file_.path(), at_, fmt::format("step {} with {} ids", record.step, count), "a record");
    const int bits = bits_of(instances_);
    const int64_t body = kFixedBytes + packed_bytes(count, bits), total = body + kHashBytes;
    if (at_ + total > size_) return end_torn();
    all += bytes(at_ + kFixedBytes, total - kFixedBytes);
    if (get<uint64_t>(all, static_cast<size_t>(body)) != hash_of(std::string_view(all).substr(0, static_cast<size_t>(body))))
      refuse(file_.path(), at_, "a record of another hash", fmt::format("the record of step {} as it was written", record.step));
    record.ids = unpack(std::string_view(all).substr(kFixedBytes), count, bits);
    for (const int64_t id : record.ids) {
      if (id >= instances_) refuse(file_.path(), at_, fmt::format("instance {}", id), fmt::format("one of the {} of the data", instances_));
    }
    at_ += total;
    return record;
  }

 private:
  std::string bytes(int64_t offset, int64_t size) const {
    std::string out(static_cast<size_t>(size), '\0');
    file_.read_at(offset, std::as_writable_bytes(std::span(out.data(), out.size())));
    return out;
  }
  // What a file system can leave behind the last bytes that reached the disk before a power cut.
  bool only_zeros() const {
    constexpr int64_t kPiece = 1 << 16;
    for (int64_t offset = at_; offset < size_; offset += kPiece) {
      const std::string piece = bytes(offset, std::min(kPiece, size_ - offset));
      if (piece.find_first_not_of('\0') != std::string::npos) return false;
    }
    return true;
  }
  std::nullopt_t end_torn() {
    torn_ = true;
    return std::nullopt;
  }

  File file_;
  int64_t size_, instances_ = 0, at_ = 0;
  bool torn_ = false;
};

}  // namespace

Ledger::Ledger(const fs::path& path, int64_t instances, int64_t last_step) : instances_(instances) {
  DZ_CHECK(instances >= 1, "instances", instances);
  int64_t keep = 0;
  if (last_step > 0 && fs::exists(path) && fs::file_size(path) > 0) {
    Reader reader(path);
    if (reader.instances() != instances) {
      throw DataError(Complaint{.where = path.string(),
                                .found = fmt::format("a ledger over {} instances", reader.instances()),
                                .expected = fmt::format("one over {}, those of the data", instances),
                                .hint = "the data of the run was changed"});
    }
    keep = reader.offset();
    while (last_step_ < last_step) {  // what lies behind is cut off, whatever it is
      const std::optional<LedgerRecord> record = reader.next();
      if (!record || record->step > last_step) break;
      last_step_ = record->step;
      keep = reader.offset();
    }
  }
  dz::create_directories(path.parent_path());
  file_ = File::append(path);
  file_.truncate(keep);
  if (keep > 0) return;
  file_.write(header_of(instances));
}

void Ledger::append(const LedgerRecord& record) {
  DZ_CHECK(record.step > last_step_, "step", record.step, "last", last_step_);
  std::string out;
  put(out, record.step);
  put(out, static_cast<uint32_t>(record.sequence_length));
  put(out, static_cast<uint32_t>(record.ids.size()));
  for (const int64_t id : record.ids) DZ_CHECK(id >= 0 && id < instances_, "id", id, "instances", instances_);
  pack(record.ids, bits_of(instances_), out);
  put(out, hash_of(out));
  file_.write(out);
  last_step_ = record.step;
}

int64_t ledger_instances(const fs::path& path) { return Reader(path).instances(); }

LedgerSummary read_ledger(const fs::path& path, const std::function<void(const LedgerRecord&)>& use) {
  Reader reader(path);
  LedgerSummary summary{.instances = reader.instances()};
  while (const std::optional<LedgerRecord> record = reader.next()) {
    ++summary.records;
    use(*record);
  }
  summary.torn = reader.torn();
  return summary;
}

}  // namespace dz::data
