// deltazero order: the instances of an epoch, a step or a rank in each dialect, one id a line.
#include "data/order.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/cli.h"

namespace dz::cli {
namespace {

constexpr int64_t kMostInABatch = 1 << 26;  // printed at once; larger parts of an epoch are printed without --batch
constexpr int64_t kBlock = 1 << 16;         // ids held at a time while an epoch is printed

struct OrderOptions {
  std::string dialect, seed;
  int64_t instances = 0, epoch = 0, max_target = 0, length = 0, batch = 0, step = 0, rank = 0, ranks = 1, workers = 0;
  bool no_shuffle = false;
  // Whether the option was given.
  bool has_epoch = false, has_chunk = false, has_batch = false, has_rank = false;
};

// CLI11 takes a number beyond 64 bits for the largest one; this looks at the digits first.
std::string number_complaint(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc::result_out_of_range ? fmt::format("found {}, expected a number that fits in 64 bits", text) : "";
}

void require(bool good, const char* where, std::string found, std::string expected) {
  if (!good) throw UsageError(Complaint{.where = where, .found = std::move(found), .expected = std::move(expected), .hint = ""});
}

void check(const OrderOptions& o, data::Dialect dialect) {
  const bool maxtext = dialect == data::Dialect::kMaxText;
  require(o.instances >= 1 && o.instances <= int64_t{1} << 60, "--instances", std::to_string(o.instances), "1 to 2^60");
  require(!o.has_epoch || o.epoch >= data::first_epoch_of(dialect), "--epoch", std::to_string(o.epoch),
          fmt::format("at least {}, the first epoch of {}", data::first_epoch_of(dialect), o.dialect));
  require(!o.has_chunk || (o.length >= 1 && o.max_target >= 1 && o.max_target % o.length == 0), "--max-target",
          fmt::format("{} with --length {}", o.max_target, o.length), "a multiple of --length");
  require(o.ranks >= 1 && o.ranks <= 1 << 20, "--ranks", std::to_string(o.ranks), "1 to 2^20");
  require(o.rank >= 0 && o.rank < o.ranks, "--rank", std::to_string(o.rank), fmt::format("0 to {}, one less than --ranks", o.ranks - 1));
  require(o.workers >= 0 && o.workers <= 1 << 16, "--workers", std::to_string(o.workers), "0 to 2^16");
  require(!maxtext || o.ranks <= o.instances, "--ranks", std::to_string(o.ranks), "at most one host an instance");
  require(!maxtext || o.workers <= 1 || o.has_batch, "--workers", std::to_string(o.workers), "--batch and --step: workers make whole batches");
  if (!o.has_batch) return;
  require(o.batch >= 1 && o.batch <= std::min(o.instances, kMostInABatch), "--batch", std::to_string(o.batch),
          fmt::format("1 to {}", std::min(o.instances, kMostInABatch)));
  require(!maxtext || o.batch % o.ranks == 0, "--batch", std::to_string(o.batch), fmt::format("a multiple of the {} hosts", o.ranks));
  require(o.step >= 1, "--step", std::to_string(o.step), "at least 1");
}

void print(std::span<const int64_t> ids) {
  std::string text;
  char digits[24];
  for (const int64_t id : ids) {
    text.append(digits, std::to_chars(digits, digits + sizeof digits, id).ptr);
    text.push_back('\n');
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw IoError("standard output: writing failed");
}

// A part of an epoch: positions begin, begin + stride ... below end.
void print_epoch(const data::Order& order, int64_t epoch, int64_t begin, int64_t end, int64_t stride) {
  std::vector<int64_t> block;
  for (int64_t at = 0; at < end; at += kBlock) {
    block.resize(static_cast<size_t>(std::min(kBlock, end - at)));
    order.epoch_order(epoch, at, block);
    size_t kept = 0;
    for (size_t i = 0; i < block.size(); ++i) {
      const int64_t position = at + static_cast<int64_t>(i);
      if (position >= begin && (position - begin) % stride == 0) block[kept++] = block[i];
    }
    print(std::span(block).first(kept));
  }
}

void run_order(const OrderOptions& o) {
  const data::Dialect dialect = data::dialect_named(o.dialect);
  check(o, dialect);
  const bool maxtext = dialect == data::Dialect::kMaxText;
  const int64_t epoch = o.has_epoch ? o.epoch : data::first_epoch_of(dialect), hosts = maxtext ? o.ranks : 1;
  const auto order = data::make_order({.dialect = dialect,
                                       .instances = o.instances,
                                       .batch = o.has_batch ? o.batch : hosts,
                                       .seed = data::BigSeed::parse(o.seed, "--seed"),
                                       .shuffle = !o.no_shuffle,
                                       .chunk = o.has_chunk ? o.max_target / o.length : 1,
                                       .hosts = hosts,
                                       .workers = maxtext ? o.workers : 0,
                                       .first_epoch = epoch});
  if (o.has_batch) {
    const std::vector<int64_t> batch = order->batch(o.step);
    if (!o.has_rank) return print(batch);
    return print(maxtext ? data::host_slice(batch, o.rank, o.ranks) : data::rank_slice(batch, o.rank, o.ranks));
  }
  const int64_t block = o.instances / hosts;
  if (!maxtext) return print_epoch(*order, epoch, o.has_rank ? o.rank : 0, o.instances, o.has_rank ? o.ranks : 1);
  print_epoch(*order, epoch, o.has_rank ? o.rank * block : 0, o.has_rank ? (o.rank + 1) * block : hosts * block, 1);
}

}  // namespace

void add_order(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("order", "the instances of an epoch, a step or a rank, one id a line");
  const auto o = std::make_shared<OrderOptions>();
  verb->add_option("--dialect", o->dialect, "keyed, olmo-core or maxtext")->required();
  verb->add_option("--instances", o->instances, "of the data set")->required();
  verb->add_option("--seed", o->seed, "a natural number; keyed: below 2^64")->required();
  CLI::Option* epoch = verb->add_option("--epoch", o->epoch, "olmo-core: from 1; else from 0; the first by default");
  CLI::Option* target = verb->add_option("--max-target", o->max_target, "max_target_sequence_length: shuffle runs of this many tokens");
  CLI::Option* length = verb->add_option("--length", o->length, "sequence_length, a divisor of --max-target");
  verb->add_flag("--no-shuffle", o->no_shuffle, "the order of the data set");
  CLI::Option* batch = verb->add_option("--batch", o->batch, "instances a step, of all ranks together");
  CLI::Option* step = verb->add_option("--step", o->step, "counted from 1 at the start of --epoch");
  CLI::Option* rank = verb->add_option("--rank", o->rank, "print this rank's part only; maxtext: this host's");
  CLI::Option* ranks = verb->add_option("--ranks", o->ranks, "how many; maxtext: hosts, which shape the batch");
  verb->add_option("--workers", o->workers, "maxtext: Grain workers a host (0: none); elsewhere without effect");
  for (CLI::Option* option : verb->get_options([](const CLI::Option* each) { return each->get_type_name() == "INT"; }))
    option->check(number_complaint);
  target->needs(length);
  length->needs(target);
  batch->needs(step);
  step->needs(batch);
  rank->needs(ranks);
  verb->footer("Without --batch: the whole epoch. exit 64: a number that gives no order");
  verb->callback([=] {
    o->has_epoch = epoch->count() > 0;
    o->has_chunk = target->count() > 0;
    o->has_batch = batch->count() > 0;
    o->has_rank = rank->count() > 0;
    try {
      run_order(*o);
    } catch (const ConfigError& error) {
      throw UsageError(error.what());  // here every setting comes from the command line
    }
  });
}

}  // namespace dz::cli
