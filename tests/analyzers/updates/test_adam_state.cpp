// SPDX-License-Identifier: Apache-2.0
// Adam's state in 16 bits. The judge counts the values themselves, with the limits worked out by
// hand: half of FP16's smallest number is 2^-25, and its root 2^-12.5.
#include "analyzers/updates/adam_state.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "analyzers/logs.hpp"
#include "analyzers/small_run.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::updates::test_adam_state {
namespace {

using test::SmallRun;
using test::Values;

constexpr const char* kSecond = "optimizer_state/exp_avg_sq/b.weight";
constexpr const char* kFirst = "optimizer_state/exp_avg/b.weight";

/// A run of torch.optim's optimizer of this class.
SmallRun run_of(const std::string& optimizer, double eps = 1e-8) {
  SmallRun run(Dtype::f16);
  (*run.manifest().about)["optimizer"] = {
      {"class", "torch.optim." + optimizer},
      {"param_groups", {{{"eps", eps}, {"betas", {0.9, 0.999}}, {"lr", 0.001}}}}};
  return run;
}

log::TensorRecord held_in(Dtype dtype, const std::string& name, const Values& values) {
  log::TensorRecord record = test::record_of(name, 0, values);
  record.source_dtype = dtype;
  return record;
}

/// The states of a log with these records, of an Adam of this eps.
std::vector<AdamState> states_of(const std::vector<log::TensorRecord>& records, double eps = 1e-8,
                                 const std::string& optimizer = "Adam") {
  const test::TempFolder folder;
  log::RunLogWriter writer(folder / "run", run_of(optimizer, eps).manifest());
  for (const log::TensorRecord& record : records) writer.write(record);
  return adam_states(underflow::analyze({folder / "run"}, {}, {}));
}

TEST_CASE("eps of 1e-8 is 0 in FP16 and a number in bfloat16", "[adam]") {
  for (const auto& [dtype, eps, is_zero] : {std::tuple{Dtype::f16, 1e-8, true},
                                            {Dtype::f16, std::ldexp(1.0, -25), true},
                                            {Dtype::f16, std::ldexp(1.0 + 1e-9, -25), false},
                                            {Dtype::f16, 1e-4, false},
                                            {Dtype::bf16, 1e-8, false}}) {
    const auto states = states_of({held_in(dtype, kSecond, {1, 2})}, eps);
    REQUIRE(states.size() == 1);
    CHECK(states[0].eps_is_zero == is_zero);
    CHECK(states[0].eps == eps);
    CHECK(states[0].held_in == dtype);
    CHECK_FALSE(states[0].assumed_settings);
    CHECK_FALSE(states[0].assumed_format);
  }
}

TEST_CASE("a second moment is lost where it is 0 and the first is not", "[adam]") {
  const auto states = states_of({held_in(Dtype::f16, kSecond, {0, 0, 0, 1e-3f}),
                                 held_in(Dtype::f16, kFirst, {0, 0.5f, -0.25f, 0.125f})});
  REQUIRE(states.size() == 1);
  CHECK(states[0].moments == Interval(4));
  CHECK(states[0].zero == Interval(3));
  CHECK(states[0].lost == Interval(2, 3));  // tables do not say which elements are 0
  CHECK(states[0].most_lost == kSecond);
  const auto alone = states_of({held_in(Dtype::f16, kSecond, {0, 1})});
  CHECK(alone.at(0).lost == Interval(0, 1));
}

TEST_CASE("state in FP32, and other state, is none of it", "[adam]") {
  CHECK(states_of({held_in(Dtype::f32, kSecond, {0, 1})}).empty());
  CHECK(
      states_of({held_in(Dtype::f16, "optimizer_state/max_exp_avg_sq/b.weight", {0, 1})}).empty());
  CHECK(states_of({held_in(Dtype::f16, "optimizer_state/momentum_buffer/b.weight", {0})}).empty());
  CHECK(states_of({held_in(Dtype::f16, "weight/b.weight", {1})}, 0, "SGD").empty());
}

TEST_CASE("the state of FP16 weights is FP16, and gradients tell what it loses", "[adam]") {
  Values gradients;
  for (int k = -24; k <= 0; ++k) gradients.push_back(std::ldexp(1.5f, k));
  std::uint64_t nothing = 0, square = 0;
  for (const float g : gradients) {  // in units of 2^-25
    nothing += std::ldexp(0.001 * double{g} * g, 25) <= 1;
    square += std::ldexp(double{g} * g, 25) <= 1;
  }
  const auto states = states_of({held_in(Dtype::f16, "weight/b.weight", {0.25f}),
                                 held_in(Dtype::f16, "weight_grad/b.weight", gradients)});
  REQUIRE(states.size() == 1);
  CHECK(states[0].assumed_format);
  CHECK(states[0].gradients == Interval(gradients.size()));
  CHECK(states[0].adds_nothing.low <= nothing);
  CHECK(nothing <= states[0].adds_nothing.high);
  CHECK(states[0].square_is_zero.low <= square);
  CHECK(square <= states[0].square_is_zero.high);
  CHECK(states[0].adds_nothing.high - states[0].adds_nothing.low <= 1);  // one binade is cut
  CHECK(std::abs(states[0].adds_nothing_to - 5.46e-3) < 1e-5);
  CHECK(std::abs(states[0].square_is_zero_to - 1.726e-4) < 1e-7);
  CHECK(states_of({held_in(Dtype::f16, "weight/b.weight", {0.25f}),
                   held_in(Dtype::f32, "master_weight/b.weight", {0.25f}),
                   held_in(Dtype::f16, "weight_grad/b.weight", gradients)})
            .empty());
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The only state of a log of two steps with these weights and gradients, of an eps.
AdamState state_of(const Values& weights_0, const Values& weights_1, const Values& gradients_0,
                   double eps = 1e-8) {
  const auto of_step = [](const std::string& name, std::int64_t step, const Values& values) {
    log::TensorRecord record = test::record_of(name, step, values);
    record.source_dtype = Dtype::f16;
    return record;
  };
  const auto states = states_of(
      {of_step("weight/b.weight", 0, weights_0), of_step("weight_grad/b.weight", 0, gradients_0),
       of_step("weight/b.weight", 1, weights_1), of_step("weight_grad/b.weight", 1, {kNan})},
      eps);
  REQUIRE(states.size() == 1);
  return states[0];
}

TEST_CASE("an eps of 0 explains the log's first NaN where they are in weights", "[adam]") {
  const AdamState broken = state_of({0.25f}, {kNan}, {1e-3f});
  CHECK(broken.divides_by_zero());
  CHECK(broken.broken == std::vector<std::string>{"weight/b.weight"});
  CHECK(broken.broken_from == 1);
  CHECK(state_of({0.25f}, {std::numeric_limits<float>::infinity()}, {0}).divides_by_zero());
  CHECK_FALSE(state_of({0.25f}, {0.25f}, {1e-3f}).divides_by_zero());  // gradients are the first
  CHECK_FALSE(state_of({0.25f}, {kNan}, {kNan}).divides_by_zero());    // so here
  CHECK_FALSE(state_of({kNan}, {kNan}, {1e-3f}).divides_by_zero());    // it began with NaN
  CHECK_FALSE(state_of({0.25f}, {kNan}, {1e-3f}, 1e-4).divides_by_zero());
}

}  // namespace
}  // namespace halfscope::analyzers::updates::test_adam_state
