// Training on every kind of data: whatever carries the run, the same bits; whatever stops it, the same instances.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "data/ledger.h"
#include "train/audit.h"
#include "train/runs.h"

namespace dz::train {
namespace {

using test::TempDir;
using Sets = std::vector<std::string>;

std::string tokens(const std::string& name) { return (fs::path(DZ_GOLDEN) / "data" / "tokens" / name).string(); }

// The token files of the goldens: 103, 40, 5 and 64 tokens, of which instances of 8 are 12, 5, 0 and 8.
Sets files() {
  return {"recipe.data.source=files",
          "recipe.data.files=['" + tokens("u16-?.npy") + "']",
          "recipe.data.tokens.eos_id=999",
          "recipe.data.tokens.pad_id=998",
          "recipe.data.sequence_length=8",
          "recipe.model.vocab_size=1000",
          "recipe.batch=4",
          "recipe.steps=12",
          "recipe.schedule.warmup=1",
          "run.checkpoint_every=0",
          "run.digest_every=1"};
}

Sets operator+(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

std::string write(const fs::path& path, const std::string& text) {
  write_file_atomic(path, text);
  return path.string();
}

std::string mixture_spec(const TempDir& root, const std::string& dialect) {
  return write(root / (dialect + ".yaml"), "requested_tokens: 96\nsequence_length: 8\nbatch_tokens: 32\ndialect: " + dialect +
                                               "\nsources:\n  - {name: a, ratio: 0.5, paths: [" + tokens("u16-0.npy") +
                                               "]}\n  - {name: b, ratio: 0.5, paths: [" + tokens("u16-3.npy") + "]}\n");
}

struct Kind {
  const char* name;
  Sets sets;
};

std::vector<Kind> kinds(const TempDir& root) {
  // A mix, its files under the name of a tokenizer.
  fs::create_directories(root / "tok");
  for (const char* name : {"u16-0.npy", "u16-3.npy"}) fs::copy_file(tokens(name), root / "tok" / name, fs::copy_options::overwrite_existing);
  write(root / "mix.txt", "# a comment\r\nwords,{TOKENIZER}/u16-0.npy\r\nmore,{TOKENIZER}/u16-3.npy");
  return {
      {"fixed", {}},
      {"fixed olmo-core", {"recipe.data.order.dialect=olmo-core", "recipe.data.max_target_length=16"}},
      {"fixed maxtext", {"recipe.data.order.dialect=maxtext", "recipe.data.order.hosts=2", "recipe.data.order.workers=2"}},
      {"masks and filter",
       {"recipe.data.label_masks=['" + tokens("u16-?-mask.npy") + "']", "recipe.data.filter.count=3", "recipe.data.filter.periods=2",
        "recipe.loss.divisor=olmo-core", "recipe.loss.divisor_ranks=2"}},
      {"padded", {"recipe.data.kind=padded"}},
      {"packed", {"recipe.data.kind=packed", "recipe.data.packing.group_size=2"}},
      {"packed olmo-core", {"recipe.data.kind=packed", "recipe.data.packing.dialect=olmo-core", "recipe.data.order.dialect=olmo-core"}},
      {"interleaved", {"recipe.data.kind=interleaved"}},
      {"vsl", {"recipe.data.kind=vsl", "recipe.data.vsl.min_length=4", "recipe.data.sequence_length=16"}},
      {"mixture sampled",
       {"recipe.data.source=mixture", "recipe.data.files=[]", "recipe.data.mixture=" + mixture_spec(root, "sampled"), "recipe.steps=3"}},
      {"mixture olmo-core",
       {"recipe.data.source=mixture", "recipe.data.files=[]", "recipe.data.mixture=" + mixture_spec(root, "olmo-core"), "recipe.steps=3"}},
      {"mix",
       {"recipe.data.source=mix", "recipe.data.files=[]", "recipe.data.mix.file=" + (root / "mix.txt").string(), "recipe.data.mix.tokenizer=tok",
        "recipe.data.mix.base_dir=" + (root / "").string()}},
      {"permuted files", {"recipe.data.source_permutation_seed=123"}},
      {"shorter at first", {"recipe.data.warm_up.sequence_length=[\"1:2\", \"3:4\", \"6:8\"]"}},
      {"split at first", {"recipe.data.warm_up.sequence_length=[\"1:2\", \"3:4\", \"6:8\"]", "recipe.data.warm_up.mode=split"}},
      {"fewer at first", {"recipe.data.warm_up.batch=[\"1:1\", \"3:2\", \"6:4\"]"}},
  };
}

struct Trace {
  std::vector<std::string> lines;
  std::string ledger;
  friend bool operator==(const Trace&, const Trace&) = default;
};

Trace trace(const fs::path& run) {
  Trace trace;
  for (const nlohmann::json& line : test::metrics(run))
    trace.lines.push_back(fmt::format("{} {} {} {}", line["step"].get<int64_t>(), line["batch_digest"].get<std::string>(),
                                      line["loss_hex"].get<std::string>(), line["digest"]["parameters"].get<std::string>()));
  trace.ledger = read_file(run / "ledger" / "consumed.bin");
  return trace;
}

TEST(DataKinds, WhateverCarriesAndStopsTheRunItIsTheSameAndAuditProvesIt) {
  const TempDir root;
  ThreadPool pool(1);
  for (const Kind& kind : kinds(root)) {
    SCOPED_TRACE(kind.name);
    const Sets sets = files() + kind.sets;
    const fs::path whole = root / (std::string(kind.name) + " whole"), broken = root / (std::string(kind.name) + " broken");
    test::train_contract(whole, sets + Sets{"topology.micro_batch=4"});
    for (const int64_t stop : {2, 5, 12}) {
      test::train_contract(broken,
                           sets + Sets{"topology.micro_batch=" + std::to_string(1 + stop % 3), "topology.loader_threads=" + std::to_string(stop % 4),
                                       "topology.prefetch=" + std::to_string(stop), "topology.threads=1", "topology.remat=full"},
                           stop);
    }
    EXPECT_EQ(trace(whole), trace(broken));
    const Audit audit = audit_run(broken, {.sets = {}, .tokens = true}, pool);
    EXPECT_FALSE(audit.difference) << to_text(audit);
    EXPECT_EQ(audit.tokens_checked, audit.last_step);
    EXPECT_GT(audit.consumed, 0);
  }
}

// The kinds are different runs: a key that did nothing would give the trace of another.
TEST(DataKinds, NoKeyIsWithoutEffect) {
  const TempDir root;
  std::map<std::string, std::string> seen;
  for (const Kind& kind : kinds(root)) {
    const fs::path run = root / kind.name;
    test::train_contract(run, files() + kind.sets, 3);
    const auto [entry, added] = seen.try_emplace(trace(run).lines.back(), kind.name);
    EXPECT_TRUE(added) << kind.name << " is " << entry->second;
  }
}

// Row 22: opening data draws nothing that the weights are drawn from. A rate this small moves no weight that is not zero.
TEST(DataKinds, InitialWeightsDoNotDependOnTheData) {
  const TempDir root;
  std::set<std::string> weights;
  for (const Kind& kind : kinds(root)) {
    const fs::path run = root / kind.name;
    test::train_contract(run, files() + kind.sets + Sets{"recipe.optimizer.lr=1e-30", "recipe.model.attention_bias=false"}, 1);
    weights.insert(test::metrics(run).at(0)["digest"]["parameters"].get<std::string>());
  }
  EXPECT_EQ(weights.size(), 1u);
}

std::string refusal(const fs::path& run, const Sets& sets) {
  try {
    test::train_contract(run, sets, 3);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Rows 11 and 14: other data is refused by the name of the file; the same bytes under another name are the same data; --override goes on, but
// ids out of range are refused all the same.
TEST(DataKinds, ChangedDataIsRefusedByName) {
  const TempDir root;
  for (const char* name : {"0", "1", "3"}) fs::copy_file(tokens(std::string("u16-") + name + ".npy"), root / (std::string("t") + name + ".npy"));
  const fs::path run = root / "run";
  const auto sets_of = [&](const std::string& list) { return files() + Sets{"recipe.data.files=[" + list + "]"}; };
  const std::string t0 = (root / "t0.npy").string(), t1 = (root / "t1.npy").string(), t3 = (root / "t3.npy").string();
  const Sets sets = sets_of(t0 + ", " + t1 + ", " + t3);
  test::train_contract(run, sets, 2);

  const std::string swapped = refusal(run, sets_of(t1 + ", " + t0 + ", " + t3));
  EXPECT_NE(swapped.find("t0.npy"), std::string::npos) << swapped;
  const std::string fewer = refusal(run, sets_of(t0 + ", " + t1));
  EXPECT_NE(fewer.find("t3.npy"), std::string::npos) << fewer;

  const std::string good = read_file(t1);
  std::string other = good;
  other[4] = static_cast<char>(other[4] ^ 1);
  write_file_atomic(t1, other);
  const std::string changed = refusal(run, sets);
  EXPECT_NE(changed.find("t1.npy"), std::string::npos) << changed;
  write_file_atomic(t1, good.substr(0, good.size() - 16));
  const std::string shorter = refusal(run, sets);
  EXPECT_NE(shorter.find("t1.npy"), std::string::npos) << shorter;

  std::string wild = good;
  wild[5] = 0x7F;  // an id of 32 thousand
  write_file_atomic(t1, wild);
  const auto with_override = [&] {
    TrainOptions options{.config = load_config(test::contract_config(), sets + Sets{"run.dir=" + run.string()}), .stop_after = 3};
    options.override_data = true;
    testing::internal::CaptureStdout();
    std::string what;
    try {
      train(std::move(options), {});
    } catch (const Error& error) {
      what = error.what();
    }
    return what + testing::internal::GetCapturedStdout();
  };
  const std::string refused = with_override();
  EXPECT_NE(refused.find("expected an id below"), std::string::npos) << refused;
  EXPECT_NE(refused.find("t1.npy"), std::string::npos) << refused;

  write_file_atomic(t1, other);
  const std::string taken = with_override();
  EXPECT_NE(taken.find("--override"), std::string::npos) << taken;

  write_file_atomic(t1, good);
  fs::rename(t1, root / "moved.npy");
  EXPECT_EQ(refusal(root / "run2", sets_of(t0 + ", " + (root / "moved.npy").string() + ", " + t3)), "");
}

// The same file by another name, in a pattern and by itself, or through a link counts twice, which somebody may not have meant.
TEST(DataKinds, AFileThatComesTwiceIsSaid) {
  const TempDir root;
  const auto notes = [&](const std::string& list) {
    Config config = load_config(test::contract_config(), files() + Sets{"recipe.data.files=[" + list + "]"});
    ThreadPool pool(1);
    std::string all;
    for (const std::string& note : open_data(config.recipe, {}, pool).notes) all += note + "\n";
    return all;
  };
  const std::string said = tokens("u16-0.npy") + ": comes more than once";
  fs::create_symlink(tokens("u16-0.npy"), root / "link.npy");
  EXPECT_EQ(notes("'" + tokens("u16-?.npy") + "'").find("more than once"), std::string::npos);
  EXPECT_NE(notes("'" + tokens("u16-?.npy") + "', '" + tokens("u16-0.npy") + "'").find(said), std::string::npos);
  EXPECT_NE(notes((root / "link.npy").string() + ", " + tokens("u16-0.npy")).find(said), std::string::npos);
  const std::string thrice = notes(tokens("u16-0.npy") + ", " + tokens("u16-0.npy") + ", " + tokens("u16-0.npy"));
  EXPECT_EQ(thrice.find("more than once"), thrice.rfind("more than once"));
}

// What is wrong is said with the key that mends it.
TEST(DataKinds, ComplaintsNameTheKey) {
  const auto refused = [](const Sets& more) {
    const TempDir root;
    return refusal(root / "run", files() + more);
  };
  const auto begins = [&](const std::string& with, const Sets& more) {
    const std::string message = refused(more);
    EXPECT_EQ(message.find(with), 0u) << message;
  };
  const Sets vsl = {"recipe.data.kind=vsl", "recipe.data.vsl.min_length=4"};
  begins("recipe.data.tokens.eos_id: found none", {"recipe.data.tokens.eos_id=-1", "recipe.data.kind=padded"});
  begins("recipe.data.kind: found no document to make", {"recipe.data.tokens.eos_id=997", "recipe.data.kind=padded"});
  begins("recipe.batch: found no whole batch of 16384 tokens", vsl + Sets{"recipe.batch=2048"});
  begins("recipe.data.vsl.cycles: found 1000 cycles", vsl + Sets{"recipe.data.vsl.cycles=1000", "recipe.data.vsl.curriculum=grow-p2"});
  begins("--set recipe.data.dtype: found uint8, expected uint16 or uint32", {"recipe.data.dtype=uint8"});
  begins("--set recipe.data.files: found an empty path", {"recipe.data.files=['']"});
}

// A loader state of OLMo-core: the run begins at the batch that OLMo-core would have given next.
TEST(DataKinds, GoesOnFromALoaderStateOfOlmoCore) {
  const TempDir root;
  const auto all = nlohmann::json::parse(read_file(fs::path(DZ_GOLDEN) / "data" / "loader.json"));
  const auto& resume = all.at("resumes").at(0);
  ASSERT_EQ(resume.at("sequence_length"), 8);
  const Sets base = files() + Sets{"recipe.data.order.dialect=olmo-core", "recipe.data.seed=" + std::to_string(resume.at("seed").get<int64_t>()),
                                   "recipe.data.tokens.pad_id=998", "recipe.steps=2"};
  for (const auto& epoch : resume.at("epochs")) {
    for (size_t done = 0; done + 2 <= epoch.at("batches").size(); ++done) {
      auto state = epoch.at("states").at(done);
      state["dataset_fingerprint_version"] = "v2.0";
      state["dataset_fingerprint"] = "4944857bb0186a9a4dc143cca748067120a61e9d304165fc2809f2a94b7219fc";  // datasets.json, fsl
      const std::string path = write(root / "state.json", state.dump());
      const fs::path run = root / fmt::format("run-{}-{}", epoch.at("epoch").get<int64_t>(), done);
      test::train_contract(run, base + Sets{"recipe.data.order.state=[" + path + "]"});
      std::vector<std::vector<int64_t>> ids;
      data::read_ledger(run / "ledger" / "consumed.bin", [&](const data::LedgerRecord& record) { ids.push_back(record.ids); });
      ASSERT_EQ(ids.size(), 2u);
      EXPECT_EQ(nlohmann::json(ids[0]), epoch.at("batches").at(done)) << done;
      EXPECT_EQ(nlohmann::json(ids[1]), epoch.at("batches").at(done + 1)) << done;
      // A state of other data is refused.
      state["dataset_fingerprint"] = std::string(64, '0');
      write(root / "state.json", state.dump());
      EXPECT_NE(refusal(root / "other", base + Sets{"recipe.data.order.state=[" + path + "]"}).find("fingerprint"), std::string::npos);
    }
  }
}

// A state of Grain: its index says which data it means, and its workers are part of the recipe.
TEST(DataKinds, GoesOnFromALoaderStateOfGrain) {
  const TempDir root;
  const auto all = nlohmann::json::parse(read_file(fs::path(DZ_GOLDEN) / "data" / "maxtext.json"));
  const std::string index = write(root / "index.json", all.at("index").at(0).at("json_text").get<std::string>());
  for (const auto& row : all.at("states")) {
    const std::string state = write(root / "state.json", row.at("state").dump());
    const fs::path run = root / fmt::format("run-{}-{}", row.at("workers").get<int64_t>(), row.at("batches_done").get<int64_t>());
    test::train_contract(
        run, files() + Sets{"recipe.data.order.dialect=maxtext", fmt::format("recipe.data.order.workers={}", row.at("workers").get<int64_t>()),
                            "recipe.data.seed=42", "recipe.data.order.index=" + index, "recipe.data.order.state=[" + state + "]", "recipe.steps=4"});
    nlohmann::json ids = nlohmann::json::array();
    data::read_ledger(run / "ledger" / "consumed.bin", [&](const data::LedgerRecord& record) { ids.push_back(record.ids); });
    EXPECT_EQ(ids, row.at("next_4_batches")) << run;
  }
}

}  // namespace
}  // namespace dz::train
