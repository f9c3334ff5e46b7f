// OLMo-core's fingerprint of a data set of each kind (data/numpy_dataset.py, fingerprint_fields, version v2.0): what its loader states name
// the data by. Files are named as the entries of the store are.
#pragma once

#include <string>

#include "data/dataset_kinds.h"
#include "data/vsl_order.h"

namespace dz::data {

std::string olmo_core_fingerprint(const TokenStore& store, int64_t target_length);  // of fixed_dataset; 0: none
std::string olmo_core_fingerprint(const TokenStore& store, const PaddedSettings& settings);
std::string olmo_core_fingerprint(const TokenStore& store, const PackedSettings& settings);
std::string olmo_core_fingerprint(const TokenStore& store, const InterleavedSettings& settings);
std::string olmo_core_fingerprint(const TokenStore& store, const VslSettings& settings, const VslCurriculum& curriculum);

}  // namespace dz::data
