// How other projects name a set of token files: the fingerprints of OLMo-core's data sets and of MaxText's index, digit for digit, so that
// a loader state or an index of theirs can be checked. Both cover names and sizes only; contents are covered by TokenStore::digest().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/token_store.h"

namespace dz::data {

struct FingerprintFile {
  std::string path;
  int64_t size = 0;  // OLMo-core: bytes (of a mixture: selected tokens * width); MaxText: tokens
};

// Name and value as Python prints it, in the order in which the class lists them.
using FingerprintFields = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::string_view kOlmoCoreFingerprintVersion = "v2.0";

// SHA-256 over "class=" CLASS, then "NAME=VALUE," of each field, then "path=BASENAME,size=BYTES," of each file (OLMo-core:
// data/numpy_dataset.py, NumpyDatasetBase.fingerprint, version v2.0). Only the last part of a path takes part.
std::string olmo_core_fingerprint(std::string_view class_name, const FingerprintFields& fields, std::span<const FingerprintFile> files);

// Values as Python prints them.
std::string python_value(std::optional<int64_t> value);  // "None" without one
std::string python_dtype(TokenType type);                // "<class 'numpy.uint32'>"

// The fields that every class begins with: vocab_size, pad_token_id, eos_token_id, dtype. An id of -1 is None.
FingerprintFields common_fields(const Vocabulary& vocabulary, TokenType type);
// Of NumpyFSLDataset and NumpyFSLDatasetMixture. The sequence length takes no part. target_length 0: None.
FingerprintFields fixed_fields(const Vocabulary& vocabulary, TokenType type, int64_t target_length);

// The files of a store, as NumpyFSLDataset hashes them.
std::vector<FingerprintFile> fingerprint_files(const TokenStore& store);

// "sha256:" and SHA-256 over "1", length, dtype, tokenizer, then path and tokens of each file, each followed by a zero byte (MaxText:
// input_pipeline/olmo_data.py, compute_fingerprint). Labels take no part.
std::string maxtext_fingerprint(int64_t sequence_length, std::string_view dtype, std::string_view tokenizer, std::span<const FingerprintFile> files);

}  // namespace dz::data
