// A token store in memory, of small arrays or of the recorded token files.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "data/temporary.h"
#include "data/token_store.h"

namespace dz::test {

class MemoryStore : public data::TokenStore {
 public:
  explicit MemoryStore(const data::Vocabulary& vocabulary, data::TokenType type = data::TokenType::kUint32) {
    vocabulary_ = vocabulary;
    type_ = type;
  }

  void add(const std::string& name, std::vector<int32_t> tokens, std::vector<uint8_t> mask = {}) {
    const auto count = static_cast<int64_t>(tokens.size());
    entries_.push_back({.name = name, .label = name, .tokens = count, .bytes = count * data::size_of(type_)});
    has_label_masks_ = has_label_masks_ || !mask.empty();
    tokens_.push_back(std::move(tokens));
    masks_.push_back(std::move(mask));
  }
  // A headerless token file and, unless empty, its mask file.
  void add_file(const std::filesystem::path& path, const std::string& name, const std::filesystem::path& mask = {}) {
    const std::string bytes = slurp(path);
    const auto width = static_cast<size_t>(data::size_of(type_));
    std::vector<int32_t> tokens(bytes.size() / width);
    for (size_t i = 0; i < tokens.size(); ++i) std::memcpy(&tokens[i], bytes.data() + i * width, width);
    const std::string mask_bytes = mask.empty() ? "" : slurp(mask);
    add(name, std::move(tokens), std::vector<uint8_t>(mask_bytes.begin(), mask_bytes.end()));
    entries_.back().bytes = static_cast<int64_t>(bytes.size());
  }
  std::vector<int32_t>& tokens_of(int64_t entry) { return tokens_[static_cast<size_t>(entry)]; }

  void read(int64_t entry, int64_t first, std::span<int32_t> out) const override { copy(tokens_, entry, first, out); }
  void read_label_mask(int64_t entry, int64_t first, std::span<uint8_t> out) const override {
    if (masks_[static_cast<size_t>(entry)].empty()) return TokenStore::read_label_mask(entry, first, out);
    copy(masks_, entry, first, out);
  }
  void verify(ThreadPool&) const override {}
  std::string digest() const override {
    Sha256 hash;
    for (const auto& tokens : tokens_) hash.update(std::as_bytes(std::span(tokens)));
    return hash.hex();
  }
  std::string manifest_json() const override { return "{}"; }

 private:
  template <class T>
  void copy(const std::vector<std::vector<T>>& from, int64_t entry, int64_t first, std::span<T> out) const {
    const std::vector<T>& all = from[static_cast<size_t>(entry)];
    if (first < 0 || static_cast<size_t>(first) + out.size() > all.size()) throw DataError("read outside of entry " + std::to_string(entry));
    std::copy_n(all.begin() + first, out.size(), out.begin());
  }

  std::vector<std::vector<int32_t>> tokens_;
  std::vector<std::vector<uint8_t>> masks_;
};

}  // namespace dz::test
