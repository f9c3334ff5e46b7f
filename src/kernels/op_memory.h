// Memory of one op case: inputs that are a pure function of their place in the case, and outputs that are compared afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/large_memory.h"
#include "kernels/op_cases.h"

namespace dz::kernels {

class CaseMemory {
 public:
  CaseMemory(OpValues values, OpFault fault) : values_(values), fault_(fault) {}

  // `count` numbers of the case's kind, times `scale`. The first input of a case takes the fault.
  template <class T>
  T* input(int64_t count, float scale = 1.0f);
  float* positive(int64_t count);                               // in (0, 2], whatever the kind: 1 / rms, second moments
  int32_t* integers(int64_t count, int32_t low, int32_t high);  // in [low, high)

  const float** pointers(int64_t count) { return static_cast<const float**>(allocate(count * static_cast<int64_t>(sizeof(float*)))); }

  // Filled with a pattern, so that an element that is not written shows.
  template <class T>
  T* output(std::string name, int64_t count);
  // An input that the op changes in place, compared afterwards.
  template <class T>
  T* in_out(std::string name, int64_t count);

  // An input that the op leaves as something else: `count` elements of another type over the same bytes, compared afterwards.
  template <class T>
  void changed(std::string name, T* data, int64_t count);

  // The lowest bit of a float input that the op can tell apart; 16 for one that is only rounded to bf16.
  void last_bit(int bit) { last_bit_ = bit; }

  std::vector<CaseOutput> outputs() const { return outputs_; }

 private:
  void* allocate(int64_t bytes);
  float value(uint64_t random) const;

  OpValues values_;
  OpFault fault_;
  int last_bit_ = 0;
  uint64_t streams_ = 0;
  struct Free {
    void operator()(std::byte* block) const { free_large(block); }
  };
  std::vector<std::unique_ptr<std::byte, Free>> blocks_;
  std::vector<CaseOutput> outputs_;
};

// Adds a case unless `wanted` leaves it out. make(memory) fills the memory and returns {units, run}.
template <class Case, class Make>
void add_case(std::vector<OpCase>& cases, CaseSet wanted, const Case& shape, std::string op, std::string name, double bytes, double flops,
              Make make) {
  const bool bench = wanted == CaseSet::kBench;
  if (bench ? shape.set != CaseSet::kBench : shape.set > wanted) return;
  cases.push_back(
      {.op = std::move(op), .name = std::move(name), .set = shape.set, .bytes = bytes, .flops = flops, .prepare = [shape, make](OpFault fault) {
         const auto memory = std::make_shared<CaseMemory>(shape.values, fault);
         PreparedCase prepared = make(*memory);
         prepared.outputs = memory->outputs();
         prepared.memory = memory;
         return prepared;
       }});
}

// Runs `args` through one entry of the table, or as `op`, which is the same over threads.
template <class Args>
using Op = void (*)(const Args& args, ThreadPool& pool);

template <class T, class Args>
PreparedCase units_of(int64_t units, const Args& args, Form<Args> TypedForms<T>::*entry, Op<std::type_identity_t<Args>> op) {
  return {.units = units,
          .run = [args, entry](const Table& table, int64_t begin, int64_t end) { (forms<T>(table).*entry)(args, begin, end); },
          .run_on = [args, op](ThreadPool& pool) { op(args, pool); },
          .outputs = {},
          .memory = {}};
}

template <class Args>
PreparedCase units_of(int64_t units, const Args& args, Form<Args> Table::*entry, Op<std::type_identity_t<Args>> op) {
  return {.units = units,
          .run = [args, entry](const Table& table, int64_t begin, int64_t end) { (table.*entry)(args, begin, end); },
          .run_on = [args, op](ThreadPool& pool) { op(args, pool); },
          .outputs = {},
          .memory = {}};
}

template <class T>
constexpr const char* type_name() {
  return sizeof(T) == sizeof(bf16) ? "bf16" : "f32";
}

const char* name_of(OpValues values);

// Cases of a group of ops on one shape, for T bf16 or float.
template <class T>
void add_norms(const RowsCase& c, CaseSet set, std::vector<OpCase>& cases);
template <class T>
void add_ropes(const RopeCase& c, CaseSet set, std::vector<OpCase>& cases);
template <class T>
void add_swiglus(const ElementsCase& c, CaseSet set, std::vector<OpCase>& cases);
template <class T>
void add_columns(const ColumnsCase& c, CaseSet set, std::vector<OpCase>& cases);
void add_norm_weights(const ColumnsCase& c, CaseSet set, std::vector<OpCase>& cases);
template <class T>
void add_losses(const LossCase& c, CaseSet set, std::vector<OpCase>& cases);
void add_states(const ElementsCase& c, CaseSet set, std::vector<OpCase>& cases);
void add_adamw(const ElementsCase& c, CaseSet set, bool single, float m_take, std::vector<OpCase>& cases);

// Cases of the tables.
void add_row_cases(CaseSet set, std::vector<OpCase>& cases);
void add_column_cases(CaseSet set, std::vector<OpCase>& cases);
void add_attention_cases(CaseSet set, std::vector<OpCase>& cases);
void add_loss_cases(CaseSet set, std::vector<OpCase>& cases);
void add_state_cases(CaseSet set, std::vector<OpCase>& cases);
void add_muon_cases(CaseSet set, std::vector<OpCase>& cases);

}  // namespace dz::kernels
