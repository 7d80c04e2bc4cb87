// SPDX-License-Identifier: Apache-2.0
// Weights and optimizer state in FP32 that hold fewer bits: planted faults are found, and healthy
// trainings have none.
#include "analyzers/weights/claims.hpp"

#include <algorithm>
#include <cstring>

#include "analyzers/weights/training.hpp"
#include "catch.hpp"

namespace test_claims {

using namespace halfscope;
using namespace halfscope::analyzers::weights;
using test::Parameter;
using test::round_all;
using test::rounded_to;
using test::TempFolder;
using test::Training;
using test::Values;

std::vector<Claim> claims_of(Training& training) {
  const TempFolder folder;
  training.write(folder / "run");
  return claims_in({folder / "run"}, {});
}

/// The entries of a kind. Empty if the log has no such tensors.
std::vector<NarrowTensors> narrow_of(const std::vector<Claim>& claims, const std::string& kind) {
  const auto at = std::ranges::find(claims, kind, &Claim::kind);
  return at == claims.end() ? std::vector<NarrowTensors>() : at->narrow;
}

/// The faults of all kinds, as text.
std::vector<std::string> faults_of(const std::vector<Claim>& claims) {
  std::vector<std::string> all;
  for (const Claim& claim : claims) {
    for (const NarrowTensors& t : claim.narrow) {
      if (!t.is_fault) continue;
      all.push_back(claim.kind + " " + std::string(name_of(t.format)) + " from step " +
                    std::to_string(t.first_step));
    }
  }
  return all;
}

using Strings = std::vector<std::string>;

Training two_layers(const std::string& optimizer = "AdamW") {
  Training training;
  training.optimizer = optimizer;
  training.parameters.resize(2);
  training.parameters[0].name = "a.weight";
  training.parameters[1].name = "b.weight";
  return training;
}

/// Draws one of the values.
template <typename T>
T one_of(std::mt19937& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

Training random_training(unsigned seed) {
  std::mt19937 random(seed);
  Training t;
  t.seed = seed;
  t.optimizer = one_of<const char*>(random, {"SGD", "Adam", "AdamW"});
  t.lr = one_of(random, {1e-3, 0.1, std::ldexp(1.0, -3), 0.5, 0.0});
  t.momentum = one_of(random, {0.0, 0.9, 0.5, 0.99, 0.75});
  t.beta1 = one_of(random, {0.9, 0.9, 0.0, 0.5, 0.95});
  t.beta2 = one_of(random, {0.999, 0.99, 0.95, 0.999});
  t.decay = one_of(random, {0.0, 0.0, 0.1});
  t.gradients = one_of<std::optional<Format>>(
      random, {kBfloat16, kBfloat16, kBinary16, std::nullopt, kFloat8E4M3});
  t.loss_scale = t.gradients == kBinary16 ? one_of(random, {1.0, 1024.0, 65536.0}) : 1;
  t.clip = one_of(random, {1.0, 1.0, 0.37, 0.5});
  t.signs = random() % 8 == 0;
  t.tells_settings = random() % 3 != 0;
  t.samples_gradients = random() % 2 == 0;
  t.sampled = one_of<std::vector<std::int64_t>>(
      random, {{0, 1, 2, 5}, {0, 4, 9}, {7, 8}, {0}, {3}, {0, 30}, {1, 2}});
  const auto add = [&](const char* name, Parameter::Start start, double touched, bool frozen) {
    t.parameters.emplace_back();
    Parameter& p = t.parameters.back();
    p.name = name;
    p.start = start;
    p.touched = touched;
    p.frozen = frozen;
  };
  add("fc.weight", one_of(random, {Parameter::Start::normal, Parameter::Start::bf16}), 1, false);
  add("embedding.weight", Parameter::Start::bf16, one_of(random, {0.02, 0.2}), false);
  add("expert.weight", Parameter::Start::bf16, one_of(random, {0.0, 0.01}), false);
  add("base.weight", Parameter::Start::bf16, 1, true);
  add("norm.weight", Parameter::Start::one, 1, false);
  add("bias", Parameter::Start::zero, 1, random() % 4 == 0);
  return t;
}

/// Returns the faults of trainings without one: the seed and the fault.
std::string wrong_faults(unsigned first, unsigned end) {
  std::string wrong;
  for (unsigned seed = first; seed < end && wrong.empty(); ++seed) {
    Training training = random_training(seed);
    for (const std::string& fault : faults_of(claims_of(training))) {
      wrong += std::to_string(seed) + ": " + fault + "; ";
    }
  }
  return wrong;
}

TEST_CASE("200 random healthy trainings have no fault", "[claims]") {
  CHECK(wrong_faults(0, 200) == "");
}

TEST_CASE("10,000 random healthy trainings have no fault", "[.exhaustive]") {
  CHECK(wrong_faults(200, 10200) == "");
}

TEST_CASE("state that is rounded once, at a sampled step, is found with the step", "[claims]") {
  for (const Format format : {kBfloat16, kBinary16}) {
    Training training = two_layers();
    training.gradient_size = 0.1f;
    training.then = [&](std::int64_t step, std::vector<Parameter>& all) {
      for (Parameter& p : all) {
        if (step != 2) continue;
        round_all(p.first, format);
        round_all(p.second, format);
      }
    };
    const std::string name(format == kBfloat16 ? "BF16" : "F16");
    CHECK(faults_of(claims_of(training)) ==
          Strings{"exp_avg " + name + " from step 2", "exp_avg_sq " + name + " from step 2"});
  }
}

TEST_CASE("state that every step rounds is found, whatever the settings", "[claims]") {
  for (const bool tells : {true, false}) {
    for (const double beta1 : {0.9, 0.5, 0.0}) {
      Training training = two_layers("Adam");
      training.tells_settings = tells;
      training.beta1 = beta1;
      training.then = [](std::int64_t, std::vector<Parameter>& all) {
        for (Parameter& p : all) {
          round_all(p.first, kBfloat16);
          round_all(p.second, kBfloat16);
        }
      };
      const auto claims = claims_of(training);
      CHECK(faults_of(claims) ==
            Strings{"exp_avg BF16 from step 0", "exp_avg_sq BF16 from step 0"});
      CHECK(narrow_of(claims, "exp_avg").at(0).names ==
            Strings{"optimizer_state/exp_avg/a.weight", "optimizer_state/exp_avg/b.weight"});
      CHECK(narrow_of(claims, "exp_avg").at(0).last_step == 5);
    }
  }
}

TEST_CASE("a momentum buffer is a copy of its gradient at first, and a fault later", "[claims]") {
  for (const bool faulty : {false, true}) {
    Training training = two_layers("SGD");
    training.gradients = kBfloat16;
    training.then = [&](std::int64_t, std::vector<Parameter>& all) {
      for (Parameter& p : all) {
        if (faulty) round_all(p.momentum, kBfloat16);
      }
    };
    const auto found = narrow_of(claims_of(training), "momentum_buffer");
    REQUIRE(found.size() == 1);
    CHECK(found[0].is_fault == faulty);
    CHECK(found[0].first_step == 0);
    CHECK(found[0].last_step == (faulty ? 5 : 0));
  }
}

TEST_CASE("a momentum buffer that is rounded once is found if it is not the gradient", "[claims]") {
  for (const bool is_new : {false, true}) {
    Training training = two_layers("SGD");
    training.gradients = kBfloat16;
    training.then = [&](std::int64_t step, std::vector<Parameter>& all) {
      for (Parameter& p : all) {
        if (step != 2) continue;
        round_all(p.momentum, kBfloat16);
        if (is_new) p.momentum = p.gradient;  // as the first step of a new optimizer
      }
    };
    CHECK(faults_of(claims_of(training)) ==
          (is_new ? Strings{} : Strings{"momentum_buffer BF16 from step 2"}));
  }
}

TEST_CASE("second moments saved in FP16 are found in a checkpoint, with their zeros", "[claims]") {
  Training training = two_layers();
  training.gradients = kBfloat16;
  training.sampled = {6};
  training.then = [](std::int64_t, std::vector<Parameter>& all) {
    for (Parameter& p : all) round_all(p.second, kBinary16);
  };
  const TempFolder folder;
  training.write(folder / "run");
  // as a checkpoint of another name, without settings and roles in the names
  const log::Safetensors sample(log::OpenPath(folder / "run/tensors/step-000006.safetensors"));
  std::vector<std::pair<std::string, Values>> tensors;
  sample.for_each([&](const log::NamedTensor& t) {
    Values values(t.view.count);
    std::memcpy(values.data(), t.view.data, t.view.bytes());
    if (t.name == "weight/a.weight") tensors.emplace_back("model.a.weight", values);
    if (t.name.starts_with("optimizer_state/exp_avg")) {
      const auto parts = t.name.substr(16);
      tensors.emplace_back("optimizer.state." + parts.substr(parts.find('/') + 1) + "." +
                               parts.substr(0, parts.find('/')),
                           values);
    }
  });
  const auto claims = claims_in({test::write_tensors(folder, tensors)}, {});
  CHECK(faults_of(claims) == Strings{"exp_avg_sq F16 from step 0"});
  const NarrowTensors found = narrow_of(claims, "exp_avg_sq").at(0);
  std::uint64_t zero = 0;
  for (const Parameter& p : training.parameters) zero += std::ranges::count(p.second, 0.f);
  CHECK(zero > 0);
  CHECK(found.zero == zero);
  CHECK(found.values == 4000);
  CHECK(found.names.size() == 2);
}

TEST_CASE("weights loaded from BF16 are a note until they move", "[claims]") {
  for (const auto& [rounds_from, expected] : {std::pair{100, Strings{}},
                                              {0, {"weight BF16 from step 0"}},
                                              {3, {"weight BF16 from step 5"}}}) {
    Training training = two_layers();
    for (Parameter& p : training.parameters) p.start = Parameter::Start::bf16;
    training.then = [from = rounds_from](std::int64_t step, std::vector<Parameter>& all) {
      for (Parameter& p : all) {
        if (step >= from) round_all(p.weight, kBfloat16);
      }
    };
    const auto claims = claims_of(training);
    CHECK(faults_of(claims) == expected);
    if (expected.empty()) CHECK_FALSE(narrow_of(claims, "weight").at(0).is_fault);
  }
}

TEST_CASE("weights of norms, near 1, are found if each step rounds them", "[claims]") {
  for (const Format format : {kBfloat16, kBinary16}) {
    for (const double lr : {5e-3, std::ldexp(1.0, -8)}) {
      Training training = two_layers();
      training.lr = lr;
      training.sampled = {0, 8, 16};
      training.parameters[1].rows = 1;
      training.parameters[0].start = training.parameters[1].start = Parameter::Start::one;
      training.then = [&](std::int64_t, std::vector<Parameter>& all) {
        for (Parameter& p : all) round_all(p.weight, format);
      };
      training.gradient_size = 1;
      const std::string name(format == kBfloat16 ? "BF16" : "F16");
      const auto faults = faults_of(claims_of(training));
      CHECK((faults.empty() ? "" : faults[0].substr(0, name.size() + 7)) ==
            (lr == 5e-3 ? "weight " + name : std::string()));
    }
  }
}

TEST_CASE("masters that a resume drops are found at that step", "[claims]") {
  Training training = two_layers();
  training.sampled = {0, 2, 4, 5};
  training.then = [](std::int64_t step, std::vector<Parameter>& all) {
    for (Parameter& p : all) {
      if (step == 3) round_all(p.weight, kBfloat16);
    }
  };
  CHECK(faults_of(claims_of(training)) == Strings{"weight BF16 from step 4"});
}

TEST_CASE("two checkpoints count as steps 0 and 1", "[claims]") {
  const TempFolder folder;
  Training training = two_layers();
  training.write(folder / "run");
  Values a = training.parameters[0].weight, b = training.parameters[1].weight;
  round_all(a, kBfloat16);
  round_all(b, kBfloat16);
  log::write_safetensors(folder / "A.safetensors", {{"weight/w", {a.size()}, test::view_of(a)}});
  log::write_safetensors(folder / "B.safetensors", {{"weight/w", {b.size()}, test::view_of(b)}});
  const auto path = [&](const char* name) { return folder / name; };
  CHECK(faults_of(claims_in({path("A.safetensors"), path("B.safetensors")}, {})) ==
        Strings{"weight BF16 from step 0"});
  const auto numbered =
      claims_in({path("A.safetensors"), path("B.safetensors")}, {}, {}, {100, 200});
  CHECK(faults_of(numbered).at(0).ends_with(" 100"));
  CHECK(faults_of(claims_in({path("A.safetensors"), path("A.safetensors")}, {})).empty());
}

TEST_CASE("few distinct values, and values on a grid, are no evidence", "[claims]") {
  const auto evidence = [](const Values& values, const Format& format) {
    return is_evidence(test::view_of(values), format);
  };
  std::mt19937 random(3);
  Values few(1000), counts(1000), many(1000), ones(1000);
  for (std::size_t i = 0; i < few.size(); ++i) {
    few[i] = rounded_to(kBfloat16, 0.1f * static_cast<float>(1 + random() % 20));
    counts[i] = static_cast<float>(random() % 256);
    many[i] = rounded_to(kBfloat16, std::normal_distribution<float>()(random));
    ones[i] = i % 2 == 0 ? 1.f : 0.f;
  }
  CHECK_FALSE(evidence(few, kBfloat16));
  CHECK_FALSE(evidence(counts, kBfloat16));
  CHECK_FALSE(evidence(counts, kBinary16));
  CHECK_FALSE(evidence(ones, kFloat8E4M3));
  CHECK(evidence(many, kBfloat16));
  CHECK_FALSE(evidence({}, kBfloat16));
}

}  // namespace test_claims
