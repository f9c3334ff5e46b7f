// States that OLMo-core and Grain wrote, and what becomes of states that are damaged or of another run.
#include "data/loader_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/goldens.h"
#include "data/orders.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int64_t>;

// The fingerprints of the goldens' data sets are not recorded with their states.
const std::string kFingerprint = "37214777916f4454f4022d95f2f8dc48bfb74579f829e47f45664b3365481fec";

Json with_fingerprint(Json state) {
  state["dataset_fingerprint_version"] = "v2.0";
  state["dataset_fingerprint"] = kFingerprint;
  return state;
}

LoaderStateText text_of(const Json& state) { return {"state.json", state.dump()}; }

// The two data sets of loader.json's resumes: 25 instances of 8 tokens; 48 of 4, shuffled in runs of 16 tokens.
struct OlmoRun {
  explicit OlmoRun(const Json& row, int64_t batch_tokens = 0) {
    const int64_t length = row["sequence_length"], batch = batch_tokens > 0 ? batch_tokens : row["global_batch_size"].get<int64_t>();
    identity.sequence_length = length;
    identity.fingerprint = kFingerprint;
    if (!row["max_target_sequence_length"].is_null()) identity.max_target = row["max_target_sequence_length"];
    settings = {.dialect = Dialect::kOlmoCore,
                .instances = identity.max_target ? 48 : 25,
                .batch = batch / length,
                .seed = row["seed"].get<uint64_t>(),
                .chunk = identity.max_target ? *identity.max_target / length : 1};
  }
  LoaderPosition at(const Json& state) const { return olmo_core_position(text_of(state), *make_order(settings), identity); }
  std::string refusal(const Json& state) const {
    return test::message_of<ConfigError>([&] { at(state); });
  }
  std::string damage(const Json& state) const {
    return test::message_of<DataError>([&] { at(state); });
  }

  LoaderIdentity identity;
  OrderSettings settings;
};

const Json& loader_golden() {
  static const Json json = test::data_golden("loader.json");
  return json;
}

TEST(OlmoCoreState, EveryRecordedStateGoesOnWithItsNextBatch) {
  int64_t states = 0;
  for (const Json& row : loader_golden()["resumes"]) {
    const OlmoRun run(row);
    const auto order = make_order(run.settings);
    for (const Json& epoch : row["epochs"]) {
      const size_t batches = epoch["batches"].size();
      for (size_t done = 0; done <= batches; ++done, ++states) {
        const LoaderPosition at = run.at(with_fingerprint(epoch["states"][done]));
        for (size_t i = done; i < batches; ++i) EXPECT_EQ(order->batch(at.step + static_cast<int64_t>(i - done)), epoch["batches"][i].get<Ids>());
        // A state after the last batch goes on in the next epoch.
        const int64_t number = epoch["epoch"];
        EXPECT_EQ(at.epoch, number + (done == batches));
        EXPECT_EQ(at.batches, done == batches ? 0 : static_cast<int64_t>(done));
        EXPECT_EQ(at.step, (number - 1) * static_cast<int64_t>(batches) + static_cast<int64_t>(done) + 1);
      }
    }
  }
  EXPECT_EQ(states, 21);
}

// reference 6.3: the reference loads any batch size; where that reads instances again, we refuse. Where it is exact, we give what it gives.
TEST(OlmoCoreState, AnotherBatchSizeIsExactOrRefused) {
  int64_t exact = 0, refused = 0;
  for (const Json& row : loader_golden()["resumes"]) {
    const OlmoRun old(row);
    for (const Json& change : row["batch_size_changed"]) {
      const int64_t tokens = change["old_batch"].get<int64_t>() * change["saved_after_batches"].get<int64_t>(), batch = change["new_batch"];
      const OlmoRun run(row, batch);
      const Json state = with_fingerprint(row["epochs"][0]["states"][change["saved_after_batches"].get<size_t>()]);
      if (tokens % batch != 0) {
        EXPECT_NE(run.refusal(state).find("read twice"), std::string::npos) << change;
        ++refused;
        continue;
      }
      const LoaderPosition at = run.at(state);
      const auto order = make_order(run.settings);
      int64_t step = at.step;
      for (const Json& ids : change["load"]["rest"]) EXPECT_EQ(order->batch(step++), ids.get<Ids>()) << change;
      EXPECT_EQ(at.batches, change["load"]["batches_processed"].get<int64_t>());
      ++exact;
    }
  }
  EXPECT_EQ(exact, 8);
  EXPECT_EQ(refused, 10);
}

Json good_state() { return with_fingerprint(loader_golden()["resumes"][0]["epochs"][1]["states"][2]); }

TEST(OlmoCoreState, StatesOfOtherRunsAreRefusedByName) {
  const OlmoRun run(loader_golden()["resumes"][0]);
  EXPECT_EQ(run.refusal(good_state()), "");
  const std::pair<const char*, Json> changes[] = {{"dataset_fingerprint_version", "v1.0"},
                                                  {"dataset_fingerprint", std::string(64, '0')},
                                                  {"seed", 34522},
                                                  {"max_target_sequence_length", 16},
                                                  {"sequence_length", 4},
                                                  {"dataset_type", "vsl"}};
  for (const auto& [key, value] : changes) {
    Json state = good_state();
    state[key] = value;
    EXPECT_NE(run.refusal(state).find(fmt::format("state.json: {}: found", key)), std::string::npos) << run.refusal(state);
  }
  Json late = good_state();
  late["batches_processed"] = 7, late["tokens_processed"] = 7 * 32;
  EXPECT_NE(run.refusal(late).find("tokens_processed"), std::string::npos);

  // --override leaves the fingerprint alone out.
  OlmoRun overridden = run;
  overridden.identity.check_fingerprint = false;
  Json other = good_state();
  other["dataset_fingerprint"] = "x";
  EXPECT_EQ(overridden.at(other).step, 9);
  other["seed"] = 1;
  EXPECT_NE(overridden.refusal(other), "");
}

TEST(OlmoCoreState, DamagedStatesAreRefusedByName) {
  const OlmoRun run(loader_golden()["resumes"][0]);
  const Json good = good_state();
  for (const auto& item : good.items()) {
    Json state = good;
    state.erase(item.key());
    EXPECT_NE(run.damage(state).find(item.key() + ": found no such key"), std::string::npos) << item.key();
    state[item.key()] = Json::array();
    EXPECT_NE(run.damage(state).find(item.key()), std::string::npos) << item.key();
  }
  for (const auto& [batches, tokens] : {std::pair{2, 65}, {2, 63}, {0, 64}, {2, 0}, {-1, 32}, {2, -64}, {3, 72 - 1}}) {
    Json state = good_state();
    state["batches_processed"] = batches, state["tokens_processed"] = tokens;
    EXPECT_NE(run.damage(state).find("tokens_processed"), std::string::npos) << batches << " " << tokens;
  }
  for (const Json& value : {Json(0), Json(-1), Json(1e300), Json(~uint64_t{0}), Json(nullptr)}) {
    Json state = good_state();
    state["epoch"] = value;
    EXPECT_NE(run.damage(state).find("epoch"), std::string::npos) << value;
  }
  const auto order = make_order(run.settings);
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  EXPECT_THROW(olmo_core_position({"state.json", deep}, *order, run.identity), DataError);
  EXPECT_THROW(olmo_core_position({"state.json", "{\"dataset_type\": " + deep + "}"}, *order, run.identity), DataError);
  EXPECT_THROW(olmo_core_position({"state.json", std::string(17 << 20, ' ')}, *order, run.identity), DataError);
  for (const char* text : {"", "{", "[]", "null", "{\"seed\": 1,}", "\x80\x02}q"})
    EXPECT_THROW(olmo_core_position({"state.json", text}, *order, run.identity), DataError) << text;
}

// With max_target_sequence_length the token stream is the same at half the length; without it a new length is another order.
TEST(OlmoCoreState, AnotherLengthOnTheSameStream) {
  const Json& row = loader_golden()["resumes"][1];
  OlmoRun run(row);
  run.identity.sequence_length = 8;
  run.settings.instances = 24, run.settings.batch = 4, run.settings.chunk = 2;
  const auto order = make_order(run.settings);
  const Json& batches = row["epochs"][0]["batches"];
  for (size_t done = 0; done < batches.size(); ++done) {
    const LoaderPosition at = run.at(with_fingerprint(row["epochs"][0]["states"][done]));
    Ids halves;
    for (const int64_t id : order->batch(at.step)) halves.insert(halves.end(), {2 * id, 2 * id + 1});
    EXPECT_EQ(halves, batches[done].get<Ids>());
  }
}

// A checkpoint between two epochs holds a state that looks like the start of the older one; the trainer's epoch tells them apart.
TEST(OlmoCoreState, TheTrainersEpochDecidesBetweenTwoEpochs) {
  const Json& epoch = loader_golden()["resumes"][0]["epochs"][0];
  EXPECT_EQ(epoch["state_after_reset"], epoch["states"][0]);
  OlmoRun run(loader_golden()["resumes"][0]);
  const Json state = with_fingerprint(epoch["state_after_reset"]);
  EXPECT_EQ(run.at(state).step, 1);
  run.identity.trainer_epoch = 1;
  EXPECT_EQ(run.at(state).step, 1);
  run.identity.trainer_epoch = 2;
  EXPECT_EQ(run.at(state).step, 7);
  EXPECT_NE(run.refusal(with_fingerprint(epoch["states"][3])), "");
  run.identity.trainer_epoch = 3;
  EXPECT_NE(run.refusal(state), "");
  Json untouched = state;
  untouched["epoch"] = nullptr;
  run.identity.trainer_epoch.reset();
  EXPECT_EQ(run.at(untouched).step, 1);
}

// With warm-up the step is found where a stage has it.
TEST(OlmoCoreState, StepsOfAWarmUp) {
  OlmoRun run(loader_golden()["resumes"][0]);
  run.settings.batch = 2;
  run.settings.stages = {{5, 4}};  // 8 instances in four steps, then the batches of the golden
  const auto order = make_order(run.settings);
  const Json& epoch = loader_golden()["resumes"][0]["epochs"][0];
  for (size_t done = 2; done < 6; ++done) {
    const LoaderPosition at = run.at(with_fingerprint(epoch["states"][done]));
    EXPECT_EQ(at.step, static_cast<int64_t>(done) + 3);
    EXPECT_EQ(order->batch(at.step), epoch["batches"][done].get<Ids>());
  }
  EXPECT_EQ(run.at(with_fingerprint(epoch["states"][6])).step, 9);
}

const Json& maxtext_golden() {
  static const Json json = test::data_golden("maxtext.json");
  return json;
}

// The data set of maxtext.json's states: 25 instances of 8 tokens, batches of 4 on one host.
struct GrainRun {
  explicit GrainRun(int64_t workers) {
    settings = {.dialect = Dialect::kMaxText, .instances = 25, .batch = 4, .seed = 42, .workers = workers};
    identity.sequence_length = 8;
    identity.dtype = "uint16";
    identity.fingerprint = "sha256:3185645696655c05a978709392ab8e075b5c686c9cf3317a00f49a490cec67ff";
  }
  LoaderPosition at(const Json& state) const { return at(std::vector{text_of(state)}); }
  LoaderPosition at(const std::vector<LoaderStateText>& texts) const { return grain_position(texts, *make_order(settings), identity); }
  std::string refusal(const Json& state) const {
    return test::message_of<ConfigError>([&] { at(state); });
  }
  std::string damage(const Json& state) const {
    return test::message_of<DataError>([&] { at(state); });
  }

  LoaderIdentity identity;
  OrderSettings settings;
};

TEST(GrainState, EveryRecordedStateGoesOnWithItsNextBatches) {
  ASSERT_EQ(maxtext_golden()["states"].size(), 12u);
  for (const Json& row : maxtext_golden()["states"]) {
    const GrainRun run(row["workers"]);
    const LoaderPosition at = run.at(row["state"]);
    EXPECT_EQ(at.batches, row["batches_done"].get<int64_t>());
    EXPECT_EQ(at.step, at.batches + 1);
    const auto order = make_order(run.settings);
    EXPECT_EQ(at.epoch, order->epoch(at.step));
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(order->batch(at.step + i), row["next_4_batches"][static_cast<size_t>(i)].get<Ids>());
  }
}

// reference 6.7, 5: at any number of batches and workers the state that Grain writes gives that number back.
Json grain_state(const OrderSettings& s, int64_t host, int64_t done, int64_t shards = 1) {
  const int64_t workers = std::max<int64_t>(s.workers, 1), batch = s.batch / s.hosts, stride = workers * shards;
  Json seen = Json::object();
  for (int64_t i = 0; i < workers; ++i) {
    const int64_t next = (done / workers + (i < done % workers)) * batch;
    seen[std::to_string(i)] = (shards > 1 ? host : 0) + i * shards - stride + next * stride;
  }
  const GrainRun run(0);
  return {{"version", 2},
          {"last_seen_indices", seen},
          {"last_worker_index", s.workers == 0 ? -1 : done % workers - 1},
          {"worker_count", s.workers},
          {"sampler", fmt::format("OlmoIndexSampler(total_instances={}, seed={}, shard_index={}, shard_count={}, shuffle=True)", s.instances,
                                  s.seed.decimal(), host, s.hosts)},
          {"data_source", fmt::format("OlmoNpyDataSource(fingerprint='{}', seq=8, dtype='<u2', remap=[('/a/', '/b/')])", run.identity.fingerprint)}};
}

std::vector<LoaderStateText> host_states(const OrderSettings& s, int64_t done, int64_t shards = 1) {
  std::vector<LoaderStateText> texts;
  for (int64_t host = 0; host < s.hosts; ++host) texts.push_back(text_of(grain_state(s, host, done, shards)));
  return texts;
}

TEST(GrainState, AnyNumberOfBatchesWorkersAndHosts) {
  for (const Json& row : maxtext_golden()["states"]) {  // the maker of states is Grain's
    const Json made = grain_state(GrainRun(row["workers"]).settings, 0, row["batches_done"]);
    for (const char* key : {"last_seen_indices", "last_worker_index", "worker_count", "sampler"}) EXPECT_EQ(made[key], row["state"][key]) << key;
  }
  for (const int64_t workers : {0, 1, 2, 3, 4, 8}) {
    for (const int64_t hosts : {1, 2, 4}) {
      GrainRun run(workers);
      run.settings.hosts = hosts;
      run.settings.batch = 3 * hosts;
      for (int64_t done = 0; done <= 2 * workers + 9; ++done) EXPECT_EQ(run.at(host_states(run.settings, done)).step, done + 1) << workers;
    }
  }
}

// A run with the double sharding has read other instances: its states are refused, never continued as if they were right.
TEST(GrainState, StatesOfDoublyShardedRunsAreRefused) {
  for (const int64_t hosts : {2, 4}) {
    for (const int64_t batch : {1, 2, 3}) {
      for (const int64_t workers : {0, 1, 2}) {
        GrainRun run(workers);
        run.settings.hosts = hosts;
        run.settings.batch = batch * hosts;
        for (int64_t done = 1; done < 9; ++done) EXPECT_THROW(run.at(host_states(run.settings, done, hosts)), Error) << hosts << batch << done;
      }
    }
  }
}

TEST(GrainState, StatesOfOtherRunsAreRefusedByName) {
  const GrainRun run(2);
  const Json good = maxtext_golden()["states"][6]["state"];
  EXPECT_EQ(run.refusal(good), "");
  const auto refusal = [&](const char* key, const Json& value) {
    Json state = good;
    state[key] = value;
    return run.refusal(state);
  };
  EXPECT_NE(refusal("version", 1).find("version: found 1, expected 2"), std::string::npos);
  EXPECT_NE(refusal("worker_count", 4).find("worker_count: found 4"), std::string::npos);
  EXPECT_NE(refusal("worker_count", -2).find("worker_count"), std::string::npos);
  const std::string sampler = good["sampler"], source = good["data_source"];
  for (const auto& [from, to] : {std::pair{"seed=42", "seed=43"}, {"=25", "=26"}, {"shard_count=1", "shard_count=2"}, {"True", "False"}}) {
    std::string other = sampler;
    other.replace(other.find(from), std::string(from).size(), to);
    EXPECT_NE(refusal("sampler", other).find("sampler: found OlmoIndexSampler("), std::string::npos) << to;
  }
  for (const auto& [from, to] : {std::pair{"sha256:3", "sha256:4"}, {"seq=8", "seq=4"}, {"<u2", "<u4"}}) {
    std::string other = source;
    other.replace(other.find(from), std::string(from).size(), to);
    EXPECT_NE(refusal("data_source", other).find("data_source: found"), std::string::npos) << to;
  }
  std::string moved = source;
  moved.replace(moved.find("[]"), 2, "[('gs://a/', '/b/')]");
  EXPECT_EQ(refusal("data_source", moved), "");  // the same data in another place

  GrainRun two(0);
  two.settings.hosts = 2;
  std::vector<LoaderStateText> texts = host_states(two.settings, 5);
  EXPECT_EQ(two.at(texts).step, 6);
  std::swap(texts[0], texts[1]);
  EXPECT_THROW(two.at(texts), ConfigError);
  EXPECT_THROW(two.at(std::vector{texts[1]}), ConfigError);
  EXPECT_THROW(two.at(std::vector{texts[1], text_of(grain_state(two.settings, 1, 4))}), ConfigError);
}

TEST(GrainState, DamagedStatesAreRefusedByName) {
  const GrainRun run(2);
  const Json good = maxtext_golden()["states"][6]["state"];  // after 3 batches: {"0": 14, "1": 7}, last worker 0
  for (const auto& item : good.items()) {
    Json state = good;
    state.erase(item.key());
    EXPECT_NE(run.damage(state).find(item.key() + ": found no such key"), std::string::npos) << item.key();
    state[item.key()] = 1.5;
    EXPECT_NE(run.damage(state).find(item.key()), std::string::npos) << item.key();
  }
  const Json wrong[] = {{{"0", 14}},
                        {{"0", 14}, {"2", 7}},
                        {{"0", 14}, {"1", 7}, {"2", 8}},
                        {{"0", 15}, {"1", 7}},
                        {{"0", 12}, {"1", 7}},
                        {{"0", 22}, {"1", 7}},
                        {{"0", 14}, {"1", 15}},
                        {{"0", -4}, {"1", 7}},
                        {{"0", 14}, {"1", ""}},
                        {{"0", 14}, {"1", -3}},
                        {{"0", int64_t{1} << 62}, {"1", int64_t{1} << 62}}};
  for (const Json& seen : wrong) {
    Json state = good;
    state["last_seen_indices"] = seen;
    EXPECT_NE(run.damage(state).find("last_"), std::string::npos) << seen;
  }
  for (const int64_t last : {-2, -1, 1, 2}) {
    Json state = good;
    state["last_worker_index"] = last;
    EXPECT_NE(run.damage(state).find("last_worker_index"), std::string::npos) << last;
  }
}

// reference 6.7, 8, and case 18: a state or a number of steps, never both; the number of MaxText's folder N is N + 1 steps.
TEST(ResumePosition, TakesAStateOrANumberOfSteps) {
  const test::TemporaryDirectory root;
  const GrainRun run(2);
  const auto order = make_order(run.settings);
  test::spill(root / "state.json", maxtext_golden()["states"][6]["state"].dump());
  EXPECT_EQ(resume_position({root / "state.json"}, std::nullopt, *order, run.identity).step, 4);
  EXPECT_EQ(resume_position({}, 3, *order, run.identity).step, 4);
  EXPECT_THROW(resume_position({root / "state.json"}, 3, *order, run.identity), ConfigError);
  EXPECT_THROW(resume_position({}, std::nullopt, *order, run.identity), ConfigError);
  EXPECT_THROW(resume_position({}, -1, *order, run.identity), ConfigError);
  EXPECT_THROW(resume_position({root / "none.json"}, std::nullopt, *order, run.identity), InputError);
  EXPECT_THROW(resume_position({root / "state.json"}, std::nullopt, *test::keyed_order(25, 4, 42), run.identity), ConfigError);
  for (const Json& row : maxtext_golden()["resume"]) {
    const GrainRun resumed(row["workers"]);
    const auto its_order = make_order(resumed.settings);
    const LoaderPosition at = resume_position({}, row["checkpoint_folder"].get<int64_t>() + 1, *its_order, resumed.identity);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(its_order->batch(at.step + i), row["unbroken_next"][static_cast<size_t>(i)].get<Ids>());
  }
  OlmoRun olmo(loader_golden()["resumes"][0]);
  test::spill(root / "olmo.json", good_state().dump());
  const auto olmo_order = make_order(olmo.settings);
  EXPECT_EQ(resume_position({root / "olmo.json"}, std::nullopt, *olmo_order, olmo.identity).step, 9);
  EXPECT_EQ(resume_position({}, 8, *olmo_order, olmo.identity).batches, 2);
  EXPECT_THROW(resume_position({root / "olmo.json", root / "olmo.json"}, std::nullopt, *olmo_order, olmo.identity), ConfigError);
}

}  // namespace
}  // namespace dz::data
