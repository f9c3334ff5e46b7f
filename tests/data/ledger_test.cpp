#include "data/ledger.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using test::message_of;
using test::TemporaryDirectory;

std::vector<LedgerRecord> read(const fs::path& path) {
  std::vector<LedgerRecord> records;
  read_ledger(path, [&](const LedgerRecord& record) { records.push_back(record); });
  return records;
}

std::vector<LedgerRecord> some_records(int64_t instances) {
  std::vector<LedgerRecord> records;
  for (int64_t step = 1; step <= 9; ++step) {
    LedgerRecord record{.step = step, .sequence_length = 8 * step, .ids = {}};
    for (int64_t i = 0; i < 1 + step % 4; ++i) record.ids.push_back((instances - 1) * (i + step) / 13);
    records.push_back(record);
  }
  return records;
}

// Widths of one bit up to more than 32, where a shift in 32 bits would wrap.
TEST(Ledger, GivesBackWhatWasWritten) {
  for (const int64_t instances : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{255}, int64_t{256}, int64_t{257}, int64_t{1} << 31, int64_t{1} << 33}) {
    const TemporaryDirectory root;
    const std::vector<LedgerRecord> records = some_records(instances);
    {
      Ledger ledger(root / "ledger" / "consumed.bin", instances, 0);
      for (const LedgerRecord& record : records) ledger.append(record);
    }
    EXPECT_EQ(read(root / "ledger" / "consumed.bin"), records) << instances;
  }
}

TEST(Ledger, TakesFewBytes) {
  const TemporaryDirectory root;
  Ledger ledger(root / "consumed.bin", 724'000'000, 0);
  ledger.append({.step = 1, .sequence_length = 8192, .ids = std::vector<int64_t>(512, 723'999'999)});
  EXPECT_EQ(fs::file_size(root / "consumed.bin"), 28 + 16 + 512 * 30 / 8 + 8);
}

TEST(Ledger, AResumeCutsBackToItsStep) {
  const TemporaryDirectory root;
  const fs::path path = root / "consumed.bin";
  const std::vector<LedgerRecord> records = some_records(100);
  for (int64_t last = 0; last <= 9; ++last) {
    {
      Ledger ledger(path, 100, 0);
      for (const LedgerRecord& record : records) ledger.append(record);
    }
    Ledger again(path, 100, last);
    EXPECT_EQ(again.last_step(), last);
    for (int64_t step = last + 1; step <= 9; ++step) again.append(records[static_cast<size_t>(step - 1)]);
    EXPECT_EQ(read(path), records) << last;
  }
}

// A kill can leave any part of the last record.
TEST(Ledger, ATornEndIsNoRecord) {
  const TemporaryDirectory root;
  const fs::path path = root / "consumed.bin";
  const std::vector<LedgerRecord> records = some_records(1000);
  {
    Ledger ledger(path, 1000, 0);
    for (const LedgerRecord& record : records) ledger.append(record);
  }
  const std::string whole = read_file(path);
  const size_t last = 16 + 2 * 10 / 8 + 1 + 8;  // bytes of the last record: two ids of ten bits
  for (size_t cut = 1; cut < last; ++cut) {
    write_file_atomic(path, std::string_view(whole).substr(0, whole.size() - cut));
    const LedgerSummary summary = read_ledger(path, [](const LedgerRecord&) {});
    EXPECT_EQ(summary.records, 8) << cut;
    EXPECT_TRUE(summary.torn) << cut;
    Ledger ledger(path, 1000, 9);
    EXPECT_EQ(ledger.last_step(), 8);
    ledger.append(records.back());
    EXPECT_EQ(read_file(path), whole) << cut;
  }
}

// What lies behind the step of the resume does not matter: zeros of a power cut, or anything.
TEST(Ledger, WhateverLiesBehindTheStepOfAResumeIsCutOff) {
  const TemporaryDirectory root;
  const fs::path path = root / "consumed.bin";
  const std::vector<LedgerRecord> records = some_records(1000);
  {
    Ledger ledger(path, 1000, 0);
    for (const LedgerRecord& record : records) ledger.append(record);
  }
  const std::string whole = read_file(path);
  for (const std::string& tail :
       {std::string(4096, '\0'), std::string(40, '\0'), std::string("garbage of more than sixteen bytes"), whole.substr(40)}) {
    write_file_atomic(path, whole + tail);
    const bool zeros = tail[0] == '\0';
    LedgerSummary summary;
    const std::string message = message_of<DataError>([&] { summary = read_ledger(path, [](const LedgerRecord&) {}); });
    EXPECT_EQ(message.empty(), zeros) << message;
    EXPECT_EQ(summary.torn, zeros);
    { EXPECT_EQ(Ledger(path, 1000, 9).last_step(), 9); }
    EXPECT_EQ(read_file(path), whole);
  }
}

// Any flipped bit is either found or leaves a file that ends early; none gives other ids.
TEST(Ledger, ADamagedByteIsFound) {
  const TemporaryDirectory root;
  const fs::path path = root / "consumed.bin";
  {
    Ledger ledger(path, 1000, 0);
    for (const LedgerRecord& record : some_records(1000)) ledger.append(record);
  }
  const std::string whole = read_file(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file_atomic(path, damaged);
    std::vector<LedgerRecord> records;
    const std::string message = message_of<DataError>([&] { records = read(path); });
    EXPECT_TRUE(!message.empty() || records.size() < 9) << at;
  }
}

TEST(Ledger, OtherDataIsRefused) {
  const TemporaryDirectory root;
  { Ledger(root / "consumed.bin", 100, 0).append({.step = 1, .sequence_length = 8, .ids = {1}}); }
  const std::string message = message_of<DataError>([&] { Ledger(root / "consumed.bin", 99, 1); });
  EXPECT_NE(message.find("100 instances"), std::string::npos) << message;
  EXPECT_NE(message_of<InputError>([&] { read_ledger(root / "none.bin", [](const LedgerRecord&) {}); }), "");
}

}  // namespace
}  // namespace dz::data
