// SPDX-License-Identifier: Apache-2.0
// Which tensors are pairs, and what is counted of them. The counts themselves: tests/table, and
// tests/python/test_swamped.py against NumPy.
#include "analyzers/updates/updates.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "analyzers/logs.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "analyzers/updates/optimizer_update.hpp"
#include "catch.hpp"

namespace test_updates {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;
using log::Role;

using Named = std::vector<std::pair<std::string, Values>>;
using Metadata = std::map<std::string, std::string>;

void sample(log::RunLogWriter& writer, std::int64_t step, const Named& tensors,
            const Metadata& metadata = {}) {
  std::vector<log::NamedTensor> named;
  for (const auto& [name, values] : tensors) {
    named.push_back({name, {values.size()}, test::view_of(values)});
    if (name.starts_with("weight/") || name.starts_with("master_weight/")) {
      writer.write(record_of(name, step, values));
    }
  }
  writer.write_sample(step, named, metadata);
}

log::Manifest manifest_with(const char* optimizer, const char* group) {
  log::Manifest manifest;
  (*manifest.about)["optimizer"]["class"] = optimizer;
  (*manifest.about)["optimizer"]["param_groups"] =
      nlohmann::json::array({nlohmann::json::parse(group)});
  return manifest;
}

log::StepScalars scalars_at(std::int64_t step, double lr, bool skipped = false) {
  log::StepScalars scalars;
  scalars.step = step;
  scalars.learning_rate = lr;
  scalars.found_inf = skipped;
  return scalars;
}

underflow::Analysis with_updates(const std::filesystem::path& log,
                                 const frames::Selection& selection = {},
                                 bool with_what_if = false) {
  underflow::Analysis analysis = underflow::analyze({log}, {}, selection);
  updates::add_updates(analysis, selection, {.what_if = with_what_if});
  return analysis;
}

const underflow::TensorFindings& find(const underflow::Analysis& analysis,
                                      const std::string& name) {
  for (const underflow::TensorFindings& t : analysis.logs[0].tensors) {
    if (t.name == name) return t;
  }
  throw std::runtime_error("no tensor " + name);
}

bool notes_say(const underflow::Analysis& analysis, const std::string& words) {
  return std::any_of(analysis.notes.begin(), analysis.notes.end(), [&](const std::string& note) {
    return note.find(words) != std::string::npos;
  });
}

// Added to 1 in binary16, of which half an ulp is 2^-11 upwards: an update that underflows, one
// that is swamped (and the rule of 2048 misses, since it asks for more), one that is rounded, an
// exact one, and one that is no update.
const Values kOnes = {1, 1, 1, 1, 1};
const Values kUpdates = {0x1p-26f, 0x1p-11f, 0x1.8p-10f, 0x1p-10f, 0};

TEST_CASE("recorded updates, over steps and in each", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    for (const int step : {0, 7}) {
      sample(writer, step, {{"weight/w", kOnes}, {"update/w", kUpdates}, {"activation/x", {1}}});
    }
  }
  const underflow::Analysis analysis = with_updates(folder / "run");
  const underflow::UpdateFindings& found = *find(analysis, "weight/w").updates;
  CHECK(found.source == underflow::UpdateSource::update);
  CHECK(found.table.counts.updates() == 8);
  CHECK(found.table.counts.zero == 2);
  CHECK(found.table.counts.half == UpdateOutcomes{2, 2, 2, 2, 0});
  CHECK(found.table.counts.fused == UpdateOutcomes{0, 4, 2, 2, 0});
  CHECK(found.table.counts.rule_2048 == 2);
  REQUIRE(found.per_step.size() == 2);
  CHECK(found.per_step[1].first == 7);
  CHECK(found.per_step[1].second.half.swamped == 1);
  CHECK_FALSE(found.what_if);
  frames::Selection one;
  one.first_step = 7;
  CHECK(find(with_updates(folder / "run", one), "weight/w").updates->per_step.size() == 1);
  CHECK(find(with_updates(folder / "run", {}, true), "weight/w").updates->what_if->kahan.steps ==
        1000);
}

TEST_CASE("sources in their order of preference, steps that lack the best are skipped", "[table]") {
  const TempFolder folder;
  const Values half(5, 0.5f);
  {
    log::RunLogWriter writer(
        folder / "run",
        manifest_with("torch.optim.sgd.SGD", R"({"params": ["w"], "lr": 9, "momentum": 0.9})"));
    writer.write(scalars_at(0, 0.25));
    writer.write(scalars_at(1, 0.25));
    sample(writer, 0, {{"weight/w", kOnes}, {"weight_after/w", half}, {"weight_grad/w", half}});
    sample(writer, 1,
           {{"weight/w", kOnes},
            {"weight_after/w", half},
            {"weight_grad/w", half},
            {"optimizer_state/momentum_buffer/w", kUpdates}});
  }
  const underflow::Analysis analysis = with_updates(folder / "run");
  const underflow::UpdateFindings& found = *find(analysis, "weight/w").updates;
  // Momentum: the gradient alone is not the update. The learning rate is the step's, not the run's.
  CHECK(found.source == underflow::UpdateSource::optimizer_state);
  CHECK(found.per_step.size() == 1);
  CHECK(found.table.cells.contains({0, -12}));
  CHECK(notes_say(analysis,
                  "updates are taken from source 'optimizer_state'; skipped: a step that has "
                  "only source 'difference'"));
}

TEST_CASE("plain SGD: the gradient without its scale, times the step's learning rate", "[table]") {
  const TempFolder folder;
  Values scaled = kUpdates;
  for (float& g : scaled) g *= -1024;
  {
    log::RunLogWriter writer(
        folder / "run",
        manifest_with("torch.optim.sgd.SGD", R"({"params": ["w"], "lr": 9, "momentum": 0})"));
    writer.write(scalars_at(0, 1.0));
    sample(writer, 0, {{"weight/w", kOnes}, {"weight_grad/w", scaled}},
           {{"gradients", "scaled"}, {"scale", "1024"}});
    writer.write(scalars_at(1, 1.0, true));
    sample(writer, 1, {{"weight/w", kOnes}, {"weight_grad/w", scaled}, {"weight_after/w", kOnes}},
           {{"gradients", "scaled"}, {"scale", "1024"}});
  }
  const underflow::Analysis analysis = with_updates(folder / "run");
  const underflow::UpdateFindings& found = *find(analysis, "weight/w").updates;
  CHECK(found.source == underflow::UpdateSource::gradient);
  CHECK(found.per_step.size() == 1);  // the other was skipped by the loss scaler
  CHECK(found.table.counts.half == UpdateOutcomes{1, 1, 1, 1, 0});
}

TEST_CASE("without a learning rate nothing is computed, and --lr gives it", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run",
                             manifest_with("torch.optim.sgd.SGD", R"({"momentum": 0, "lr": 1})"));
    sample(writer, 0, {{"weight/w", kOnes}, {"weight_grad/w", kUpdates}});
  }
  const underflow::Analysis analysis = with_updates(folder / "run");
  CHECK_FALSE(find(analysis, "weight/w").updates);
  CHECK(notes_say(analysis, "no learning rate is recorded"));
  CHECK(notes_say(analysis, "--lr X"));
  frames::Selection told;
  told.learning_rate = 1.0;
  CHECK(find(with_updates(folder / "run", told), "weight/w").updates->table.counts.updates() == 4);
}

TEST_CASE("differences: what is zero is undetermined, and no update", "[table]") {
  const TempFolder folder;
  Values after = kOnes;
  after[2] += 0x1p-20f;
  const auto file = write_tensors(folder, {{"weight/w", kOnes}, {"weight_after/w", after}});
  const underflow::UpdateFindings found = *find(with_updates(file), "weight/w").updates;
  CHECK(found.source == underflow::UpdateSource::difference);
  CHECK(found.undetermined == 4);
  CHECK(found.table.counts.pairs == 1);
  CHECK(found.table.counts.zero == 0);
  CHECK(found.table.counts.half.swamped == 1);
}

TEST_CASE("master weights stand in, and only where there is no weight", "[table]") {
  const TempFolder folder;
  const auto file = write_tensors(folder, {{"master_weight/a", kOnes},
                                           {"update/a", kUpdates},
                                           {"master_weight/b", kOnes},
                                           {"weight/b", kOnes},
                                           {"update/b", kUpdates}});
  const underflow::Analysis analysis = with_updates(file);
  CHECK(find(analysis, "master_weight/a").updates);
  CHECK_FALSE(find(analysis, "master_weight/b").updates);
  CHECK(find(analysis, "weight/b").updates);
}

TEST_CASE("of several ranks every part of a sharded weight counts", "[table]") {
  const TempFolder folder;
  log::Manifest manifest;
  manifest.world_size = 2;
  for (const bool sharded : {false, true}) {
    manifest.sharded = sharded ? std::vector{Role::weight, Role::update} : std::vector<Role>();
    const std::string run = sharded ? "sharded" : "replicated";
    for (int rank = 0; rank < 2; ++rank) {
      manifest.rank = rank;
      log::RunLogWriter writer(folder / (run + "/rank-000" + std::to_string(rank)), manifest);
      sample(writer, 3, {{"weight/w", kOnes}, {"update/w", kUpdates}});
    }
    const underflow::UpdateFindings found = *find(with_updates(folder / run), "weight/w").updates;
    CHECK(found.table.counts.pairs == (sharded ? 10 : 5));
    CHECK(found.per_step.size() == 1);
    CHECK(found.per_step[0].second.pairs == (sharded ? 10 : 5));
  }
  // A rank's part of a gradient is not the update of a whole weight.
  manifest.sharded = {Role::update};
  for (int rank = 0; rank < 2; ++rank) {
    manifest.rank = rank;
    log::RunLogWriter writer(folder / ("mixed/rank-000" + std::to_string(rank)), manifest);
    sample(writer, 3, {{"weight/w", kOnes}, {"update/w", kUpdates}});
  }
  CHECK_FALSE(find(with_updates(folder / "mixed"), "weight/w").updates);
}

TEST_CASE("what cannot be shown or counted is noted", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    writer.write(record_of("activation/x", 0, {1}));
    writer.write_sample(
        0, {{"weight/w", {5}, test::view_of(kOnes)}, {"update/w", {5}, test::view_of(kUpdates)}});
  }
  CHECK(notes_say(with_updates(folder / "run"),
                  "tensor 'weight/w' is sampled but has no histogram at any selected step"));
  const std::byte eight[2] = {};
  const TensorView narrow = {Dtype::f8_e4m3, eight, 2};
  log::write_safetensors(folder / "narrow.safetensors",
                         {{"weight/w", {2}, narrow}, {"update/w", {2}, narrow}});
  const underflow::Analysis analysis = with_updates(folder / "narrow.safetensors");
  CHECK_FALSE(find(analysis, "weight/w").updates);
  CHECK(notes_say(analysis, "is held in F8_E4M3: no updates are counted of 8-bit tensors"));
}

TEST_CASE("two shapes are no pair: the next source is taken, or none", "[table]") {
  const TempFolder folder;
  const Values two(2, 0.5f);
  {
    log::RunLogWriter writer(folder / "run",
                             manifest_with("torch.optim.Adam", R"({"params": ["w", "v"]})"));
    writer.write(scalars_at(0, 0.25));
    sample(writer, 0,
           {{"weight/w", kOnes},
            {"update/w", two},
            {"optimizer_state/exp_avg/w", kOnes},
            {"optimizer_state/exp_avg_sq/w", two},
            {"weight_after/w", kUpdates},
            {"weight/v", kOnes},
            {"update/v", two},
            {"weight_after/v", two},
            {"weight/u", kOnes},
            {"update/u", kUpdates}});
  }
  const underflow::Analysis analysis = with_updates(folder / "run");
  CHECK(find(analysis, "weight/w").updates->source == underflow::UpdateSource::difference);
  CHECK(notes_say(analysis,
                  "tensor 'weight/w' has shape [5], but 'optimizer_state/exp_avg_sq/w' has [2], "
                  "'update/w' has [2]: "));
  CHECK(notes_say(analysis, "so updates are taken from source 'difference'"));
  CHECK_FALSE(find(analysis, "weight/v").updates);
  CHECK(notes_say(analysis,
                  "tensor 'weight/v' has shape [5], but 'update/v' has [2], "
                  "'weight_after/v' has [2]: "));
  CHECK(notes_say(analysis, "so no update is known"));
  CHECK(find(analysis, "weight/u").updates->source == underflow::UpdateSource::update);
  CHECK_FALSE(notes_say(analysis, "PyTorch's defaults"));  // of what was not recomputed
}

TEST_CASE("what a log does not say of the optimizer is assumed aloud", "[table]") {
  const TempFolder folder;
  const auto notes_of = [&](const char* run, const char* kind, const char* group) {
    {
      log::RunLogWriter writer(folder / run, manifest_with(kind, group));
      writer.write(scalars_at(0, 0.25));
      sample(writer, 0,
             {{"weight/w", kOnes},
              {"optimizer_state/exp_avg/w", kOnes},
              {"optimizer_state/exp_avg_sq/w", kOnes}});
    }
    const underflow::Analysis analysis = with_updates(folder / run);
    REQUIRE(find(analysis, "weight/w").updates);
    return analysis;
  };
  CHECK(notes_say(
      notes_of("adam", "torch.optim.Adam", R"({"params": ["w"], "eps": "small"})"),
      "updates are recomputed with PyTorch's defaults, weight_decay 0, eps 1e-08, betas 0.9 "
      "and 0.999;"));
  CHECK(notes_say(notes_of("adamw", "torch.optim.AdamW", R"({"params": ["w"], "betas": [0, 0.5]})"),
                  "recomputed with PyTorch's defaults, weight_decay 0.01, eps 1e-08;"));
  CHECK_FALSE(
      notes_say(notes_of("all", "torch.optim.Adam",
                         R"({"params": ["w"], "betas": [0, 0.5], "eps": 1, "weight_decay": 0})"),
                "PyTorch's defaults"));
}

TEST_CASE("optimizers: the formulas in binary64, from state after the step", "[table]") {
  const double g = 0.3, w = 0.75, m = 0.02, v = 0.0004;
  const std::vector<double> gs = {g}, ws = {w}, ms = {m}, vs = {v};
  const auto view = [](const std::vector<double>& values) {
    return halfscope::view_of(std::span<const double>(values));
  };
  updates::OptimizerInputs in;
  in.weight = view(ws);
  in.gradient = view(gs);
  in.gradient_scale = 4;
  in.first = view(ms);
  in.second = view(vs);
  in.count = 1;
  in.steps = 3;
  const auto update = [&](const updates::Optimizer& o) {
    return std::get<std::vector<double>>(updates::compute_update(o, in).values).at(0);
  };
  updates::Optimizer o;
  o.rate = 0.1;
  CHECK(update(o) == Approx(-0.1 * g / 4));
  o.maximize = true;
  CHECK(update(o) == Approx(0.1 * g / 4));
  o.maximize = false;
  o.weight_decay = 0.01;
  CHECK(update(o) == Approx(-0.1 * (g / 4 + 0.01 * w)));
  o.momentum = 0.9;
  CHECK(update(o) == Approx(-0.1 * m));
  o.nesterov = true;
  CHECK(update(o) == Approx(-0.1 * (g / 4 + 0.01 * w + 0.9 * m)));
  o.algorithm = halfscope::optimizer::Algorithm::adam;
  const double corrected = m / (1 - std::pow(0.9, 3));
  const double root = std::sqrt(v / (1 - std::pow(0.999, 3))) + 1e-8;
  CHECK(update(o) == Approx(-0.1 * corrected / root));
  o.algorithm = halfscope::optimizer::Algorithm::adamw;
  CHECK(update(o) == Approx(-0.1 * corrected / root - 0.1 * 0.01 * w));
}

}  // namespace test_updates
