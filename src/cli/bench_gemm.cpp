// deltazero bench gemm: the matrix products of a training step beside the raw peak of their instruction.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "cli/bench.h"
#include "cli/corpus_options.h"
#include "kernels/gemm.h"
#include "kernels/peak.h"
#include "kernels/scratch.h"
#include "kernels/table.h"
#include "model/bench_sizes.h"

namespace dz::cli {
namespace {

using Json = nlohmann::ordered_json;
using kernels::Isa;

struct Options {
  std::string model = "nano";
  std::string dtype = "bf16";
  int threads = default_threads();
  int64_t rounds = 5;
  int64_t m = 0, n = 0, k = 0;
  bool json = false;
};

// A linear layer [outputs, inputs] that a step goes through `count` times.
struct Linear {
  const char* name;
  int64_t inputs, outputs, count;
};

std::vector<Linear> linears_of(const model::ModelConfig& config) {
  const int64_t d_model = config.d_model, layers = config.n_layers;
  return {{"attention", d_model, config.q_width(), 4 * layers},
          {"gate_up", d_model, config.d_ff, 2 * layers},
          {"down", config.d_ff, d_model, layers},
          {"head", d_model, config.vocab_size, 1}};
}

template <class T>
T element(int64_t i) {
  const uint32_t mixed = static_cast<uint32_t>(i) * 2654435761u;
  const uint32_t bits = 0x3e000000u + (mixed & 0x80ff0000u) + (mixed >> 31 << 23);  // of either sign, between 1/8 and 1/2, exact in bf16
  if constexpr (sizeof(T) == sizeof(bf16)) {
    return {static_cast<uint16_t>(bits >> 16)};
  } else {
    return std::bit_cast<float>(bits);
  }
}

// A matrix on huge pages, as a training step's are.
template <class T>
class Matrix {
 public:
  explicit Matrix(int64_t count) : data_(reinterpret_cast<T*>(memory_.reserve(count * static_cast<int64_t>(sizeof(T))))) {
    for (int64_t i = 0; i < count; ++i) data_[i] = element<T>(i);
  }
  T* get() const { return data_; }

 private:
  kernels::Scratch memory_;
  T* data_;
};

// x [rows, inputs], weight [outputs, inputs], dy and y [rows, outputs]; dw in f32, written new, its 32-blocks restarting at each instance.
template <class T>
struct Layer {
  Matrix<T> x, weight, dy, y;
  Matrix<float> dw;
  kernels::Gemm<T> forward, dx, weight_grad;

  Layer(int64_t rows, int64_t inputs, int64_t outputs, int64_t segment)
      : x(rows * inputs), weight(outputs * inputs), dy(rows * outputs), y(rows * std::max(inputs, outputs)), dw(outputs * inputs) {
    forward = {.m = rows, .n = outputs, .k = inputs, .a = x.get(), .a_row = inputs, .b = weight.get(), .b_row = 1, .b_col = inputs};
    dx = {.m = rows, .n = inputs, .k = outputs, .a = dy.get(), .a_row = outputs, .b = weight.get(), .b_row = inputs, .b_col = 1};
    weight_grad = {.m = outputs, .n = inputs, .k = rows, .a = dy.get(), .a_row = 1, .a_col = outputs, .b = x.get(), .b_row = inputs, .b_col = 1};
    forward.out = dx.out = y.get();
    forward.out_stride = outputs;
    dx.out_stride = inputs;
    weight_grad.k_segment = segment;
    weight_grad.acc = dw.get();
    weight_grad.acc_stride = inputs;
  }
};

// The median of `rounds` by the clock on the wall, after one round that warms up. Short products run several times a round.
template <class T>
double seconds_of(const kernels::TypedForms<T>& form, const kernels::Gemm<T>& product, int64_t rounds, ThreadPool& pool) {
  form.gemm(product, &pool);
  const Stopwatch once;
  form.gemm(product, &pool);
  const int64_t repeats = std::clamp<int64_t>(static_cast<int64_t>(0.002 / std::max(once.seconds(), 1e-6)), 1, 1000);
  std::vector<double> seconds;
  for (int64_t round = 0; round < rounds; ++round) {
    const Stopwatch watch;
    for (int64_t i = 0; i < repeats; ++i) form.gemm(product, &pool);
    seconds.push_back(watch.seconds() / static_cast<double>(repeats));
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

double gflop(int64_t m, int64_t n, int64_t k) { return 2e-9 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
double tenths(double value) { return std::round(10 * value) / 10; }

struct Peaks {
  double before = 0, after = 0;
  double mean() const { return 0.5 * (before + after); }
};

template <class T>
void bench_model(const Options& options, ThreadPool& pool) {
  constexpr DType kType = dtype_of<T>();
  const model::BenchSize& size = model::bench_size(options.model, "--model");
  const int64_t rows = size.rows();
  const kernels::TypedForms<T>& form = kernels::forms<T>();
  Json line = {{"peer", "deltazero-gemm"}, {"model", size.name}, {"dtype", options.dtype}, {"threads", options.threads}};
  line["gflops"] = line["tokens_per_s"] = 0;
  line["rows"] = rows;
  double seconds = 0, flops = 0;
  Peaks peaks{.before = kernels::peak_gflops(kType, pool)};
  for (const auto& [name, inputs, outputs, count] : linears_of(size.config)) {
    const Layer<T> layer(rows, inputs, outputs, size.seq_len);
    const double work = gflop(rows, inputs, outputs);
    const std::pair<const char*, const kernels::Gemm<T>*> products[] = {{"forward", &layer.forward}, {"dx", &layer.dx}, {"dw", &layer.weight_grad}};
    for (const auto& product : products) {
      const double took = seconds_of(form, *product.second, options.rounds, pool);
      line[fmt::format("{}_{}", name, product.first)] = tenths(work / took);
      seconds += took * static_cast<double>(count);
      flops += work * static_cast<double>(count);
    }
  }
  peaks.after = kernels::peak_gflops(kType, pool);
  line["gflops"] = tenths(flops / seconds);
  line["tokens_per_s"] = tenths(static_cast<double>(rows) / seconds);
  line["isa"] = kernels::name_of(kernels::active().isa);
  line["peak_gflops"] = {tenths(peaks.before), tenths(peaks.after)};
  line["share_of_peak"] = std::round(1000 * flops / seconds / peaks.mean()) / 1000;
  if (options.json) {
    fmt::print("{}\n", line.dump());
    return;
  }
  fmt::print("{}  {}  {}  {} threads  peak {:.0f}, {:.0f} GFLOP/s\n", size.name, options.dtype, line["isa"].get<std::string>(), options.threads,
             peaks.before, peaks.after);
  for (const Linear& linear : linears_of(size.config)) {
    fmt::print("{:<10} {:>5} x {:>6} x {:>5}", linear.name, rows, linear.outputs, linear.inputs);
    for (const char* product : {"forward", "dx", "dw"}) {
      const double rate = line[fmt::format("{}_{}", linear.name, product)].get<double>();
      fmt::print("   {} {:>6.1f} {:>3.0f}%", product, rate, 100 * rate / peaks.mean());
    }
    fmt::print("\n");
  }
  fmt::print("together   {:.1f} GFLOP/s, {:.1f}% of the raw peak; a step of nothing else: {:.1f} tokens/s\n", flops / seconds,
             100 * flops / seconds / peaks.mean(), static_cast<double>(rows) / seconds);
}

// One shape through every form that this CPU has.
template <class T>
void bench_shape(const Options& options, ThreadPool& pool) {
  constexpr DType kType = dtype_of<T>();
  const Layer<T> layer(options.m, options.k, options.n, 0);
  const double work = gflop(options.m, options.n, options.k);
  for (const Isa isa : kernels::available()) {
    if (isa == Isa::kScalar || (kType == DType::kF32 && (isa == Isa::kAvx512Bf16 || isa == Isa::kAmx))) continue;  // those multiply f32 as AVX-512
    const kernels::TypedForms<T>& form = kernels::forms<T>(kernels::table_of(isa));
    Peaks peaks{.before = kernels::raw_peak_gflops(isa, kType, pool)};
    const double forward = work / seconds_of(form, layer.forward, options.rounds, pool);
    const double dx = work / seconds_of(form, layer.dx, options.rounds, pool);
    const double dw = work / seconds_of(form, layer.weight_grad, options.rounds, pool);
    peaks.after = kernels::raw_peak_gflops(isa, kType, pool);
    const auto share = [&](double rate) { return 100 * rate / peaks.mean(); };
    if (options.json) {
      const Json line = {{"isa", kernels::name_of(isa)},
                         {"dtype", options.dtype},
                         {"threads", options.threads},
                         {"m", options.m},
                         {"n", options.n},
                         {"k", options.k},
                         {"forward", tenths(forward)},
                         {"dx", tenths(dx)},
                         {"dw", tenths(dw)},
                         {"peak_gflops", {tenths(peaks.before), tenths(peaks.after)}}};
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print("{:<12} {} {} threads  forward {:>6.1f} {:>3.0f}%   dx {:>6.1f} {:>3.0f}%   dw {:>6.1f} {:>3.0f}%   peak {:.0f}, {:.0f} GFLOP/s\n",
                 kernels::name_of(isa), options.dtype, options.threads, forward, share(forward), dx, share(dx), dw, share(dw), peaks.before,
                 peaks.after);
    }
  }
}

template <class T>
void bench(const Options& options) {
  ThreadPool pool(options.threads);
  options.m > 0 ? bench_shape<T>(options, pool) : bench_model<T>(options, pool);
}

}  // namespace

void add_bench_gemm(CLI::App& verb) {
  CLI::App* part = verb.add_subcommand("gemm", "the matrix products of a training step, beside the raw peak");
  auto options = std::make_shared<Options>();
  CLI::Option* model = part->add_option("--model", options->model, "nano, 60m, 190m, 190m-2048, smoke")->capture_default_str();
  part->add_option("--dtype", options->dtype, "of the factors; sums are fp32")->check(CLI::IsMember({"bf16", "fp32"}))->capture_default_str();
  part->add_option("--threads", options->threads, "threads")->check(CLI::Range(1, 1024))->capture_default_str();
  part->add_option("--rounds", options->rounds, "of each product; the median counts")->check(CLI::Range(1, 10000))->capture_default_str();
  const auto side = [&](const char* name, int64_t& value, const char* what) {
    return part->add_option(name, value, what)->check(CLI::Range(1, 1 << 18))->excludes(model);
  };
  CLI::Option* m = side("--m", options->m, "one shape in every form: rows,");
  CLI::Option* n = side("--n", options->n, "outputs")->needs(m);
  CLI::Option* k = side("--k", options->k, "and inputs of a linear layer")->needs(n);
  m->needs(k);
  part->add_flag("--json", options->json, "one line of JSON a model or form");
  part->footer("forward x W', dx dy W, dw dy' x, packing and stores included, by the clock on the wall.");
  part->callback([options] { options->dtype == "bf16" ? bench<bf16>(*options) : bench<float>(*options); });
}

}  // namespace dz::cli
