#include "kernels/op_cases.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "kernels/op_memory.h"
#include "numerics/rounding.h"

namespace dz::kernels {
namespace {

// SplitMix64's mixing: a good 64-bit number for each index.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

float uniform(uint64_t random) { return static_cast<float>(random >> 40) * 0x1p-23f - 1.0f; }

constexpr uint32_t kSpecialBits[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f812345u, 0x80000000u, 0x00000000u,
                                     0x00012345u, 0x807fffffu, 0x00800000u, 0x7f7fffffu, 0xff7fffffu, 0x00400000u};

template <class T>
T with_flipped_bit(T x, int bit) {
  if constexpr (std::is_same_v<T, bf16>) {
    return {static_cast<uint16_t>(x.bits ^ 1u)};
  } else {
    return std::bit_cast<float>(std::bit_cast<uint32_t>(x) ^ (1u << bit));
  }
}

bool both_nan(DType dtype, const std::byte* a, const std::byte* b) {
  const auto nan = [&](const std::byte* p) {
    if (dtype == DType::kF64) {
      double x;
      std::memcpy(&x, p, sizeof x);
      return x != x;
    }
    uint32_t bits = 0;
    std::memcpy(dtype == DType::kBF16 ? reinterpret_cast<std::byte*>(&bits) + 2 : reinterpret_cast<std::byte*>(&bits), p, size_of(dtype));
    return (bits & 0x7fffffffu) > 0x7f800000u;
  };
  return nan(a) && nan(b);
}

std::string hex(const std::byte* p, size_t size) {
  std::string text = "0x";
  for (size_t i = size; i-- > 0;) text += fmt::format("{:02x}", static_cast<unsigned>(p[i]));
  return text;
}

}  // namespace

const char* name_of(OpValues values) {
  switch (values) {
    case OpValues::kNormal:
      return "";
    case OpValues::kTiny:
      return " tiny";
    case OpValues::kHuge:
      return " huge";
    case OpValues::kSpecial:
      return " special";
  }
  return "";
}

void* CaseMemory::allocate(int64_t bytes) {
  blocks_.emplace_back(static_cast<std::byte*>(allocate_large(static_cast<size_t>(bytes))));
  return blocks_.back().get();
}

float CaseMemory::value(uint64_t random) const {
  const float x = uniform(random) * (1.5f + 0.5f * uniform(mix(random)));  // a product, so that the low bits of small numbers are used too
  const auto power = [&](uint64_t exponent, uint64_t range) {
    return std::bit_cast<float>(static_cast<uint32_t>(exponent + (random & 0xffu) % range) << 23);
  };
  switch (values_) {
    case OpValues::kNormal:
      return x;
    case OpValues::kTiny:
      return (random & 0x700u) == 0 ? std::bit_cast<float>(static_cast<uint32_t>(random) & 0x807fffffu) : x * power(1, 80);
    case OpValues::kHuge:
      return x * power(140, 114);
    case OpValues::kSpecial:
      return (random & 0x3f00u) == 0 ? std::bit_cast<float>(kSpecialBits[(random >> 16) % std::size(kSpecialBits)]) : x;
  }
  return x;
}

template <class T>
T* CaseMemory::input(int64_t count, float scale) {
  auto* data = static_cast<T*>(allocate(count * static_cast<int64_t>(sizeof(T))));
  const uint64_t stream = mix(++streams_);
  for (int64_t i = 0; i < count; ++i) {
    const float x = value(mix(stream + static_cast<uint64_t>(i))) * scale;
    if constexpr (std::is_same_v<T, bf16>) {
      data[i] = {static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)};  // cut, so that bf16 denormals occur too
    } else {
      data[i] = x;
    }
  }
  if (streams_ == 1 && fault_ == OpFault::kLastBit) data[count / 2] = with_flipped_bit(data[count / 2], last_bit_);
  if (streams_ == 1 && fault_ == OpFault::kSwapLanes && count > 1) std::swap(data[(count - 1) / 2], data[(count - 1) / 2 + 1]);
  return data;
}

float* CaseMemory::positive(int64_t count) {
  auto* data = static_cast<float*>(allocate(count * static_cast<int64_t>(sizeof(float))));
  const uint64_t stream = mix(++streams_);
  for (int64_t i = 0; i < count; ++i) data[i] = 1.0f + uniform(mix(stream + static_cast<uint64_t>(i)) | (uint64_t{1} << 40));
  return data;
}

int32_t* CaseMemory::integers(int64_t count, int32_t low, int32_t high) {
  auto* data = static_cast<int32_t*>(allocate(count * static_cast<int64_t>(sizeof(int32_t))));
  const uint64_t stream = mix(++streams_);
  for (int64_t i = 0; i < count; ++i) {
    data[i] = low + static_cast<int32_t>(mix(stream + static_cast<uint64_t>(i)) % static_cast<uint64_t>(high - low));
  }
  return data;
}

template <class T>
T* CaseMemory::output(std::string name, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
  void* data = allocate(bytes);
  std::memset(data, 0x5a, static_cast<size_t>(bytes));
  outputs_.push_back({std::move(name), dtype_of<T>(), data, count});
  return static_cast<T*>(data);
}

template <class T>
T* CaseMemory::in_out(std::string name, int64_t count) {
  T* data = input<T>(count);
  outputs_.push_back({std::move(name), dtype_of<T>(), data, count});
  return data;
}

template <class T>
void CaseMemory::changed(std::string name, T* data, int64_t count) {
  outputs_.push_back({std::move(name), dtype_of<T>(), data, count});
}

template bf16* CaseMemory::input<bf16>(int64_t, float);
template float* CaseMemory::input<float>(int64_t, float);
template bf16* CaseMemory::output<bf16>(std::string, int64_t);
template float* CaseMemory::output<float>(std::string, int64_t);
template double* CaseMemory::output<double>(std::string, int64_t);
template bf16* CaseMemory::in_out<bf16>(std::string, int64_t);
template float* CaseMemory::in_out<float>(std::string, int64_t);
template void CaseMemory::changed<bf16>(std::string, bf16*, int64_t);
template void CaseMemory::changed<float>(std::string, float*, int64_t);

std::vector<OpCase> op_cases(CaseSet set) {
  std::vector<OpCase> cases;
  add_row_cases(set, cases);
  add_column_cases(set, cases);
  add_attention_cases(set, cases);
  add_loss_cases(set, cases);
  add_state_cases(set, cases);
  add_muon_cases(set, cases);
  return cases;
}

std::string first_difference(const PreparedCase& a, const PreparedCase& b) {
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    const CaseOutput &left = a.outputs[i], &right = b.outputs[i];
    const size_t size = size_of(left.dtype);
    const auto *p = static_cast<const std::byte*>(left.data), *q = static_cast<const std::byte*>(right.data);
    if (std::memcmp(p, q, static_cast<size_t>(left.count) * size) == 0) continue;
    for (int64_t j = 0; j < left.count; ++j, p += size, q += size) {
      if (std::memcmp(p, q, size) == 0 || both_nan(left.dtype, p, q)) continue;
      return fmt::format("{}, element {} of {}: {} against {}", left.name, j, left.count, hex(p, size), hex(q, size));
    }
  }
  return {};
}

}  // namespace dz::kernels
