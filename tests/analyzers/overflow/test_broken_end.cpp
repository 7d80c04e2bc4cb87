// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/broken_end.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/recommend/no_step_held.hpp"
#include "analyzers/scale_history/run_log_facts.hpp"
#include "catch.hpp"

namespace halfscope::analyzers {
namespace {

using log::Role;

void add(underflow::TensorFindings& tensor, std::int64_t step, std::uint64_t nan, std::uint64_t inf,
         double scale = 1) {
  underflow::StepFindings& found = tensor.per_step.emplace_back();
  found.step = step;
  found.scale = scale;
  found.counts.nan = nan;
  found.counts.inf = inf;
}

underflow::TensorFindings tensor_of(Role role, std::optional<Dtype> dtype) {
  underflow::TensorFindings tensor;
  tensor.log = "log";
  tensor.name = log::name_of(role);
  tensor.role = role;
  tensor.source_dtype = dtype;
  tensor.counted = is_gradient(role);
  return tensor;
}

log::StepScalars scalars_of(std::int64_t step, std::optional<double> scale,
                            std::optional<bool> found_inf = {}) {
  log::StepScalars scalars;
  scalars.step = step;
  scalars.loss_scale = scale;
  scalars.found_inf = found_inf;
  return scalars;
}

underflow::Analysis analysis_of(std::vector<underflow::TensorFindings> tensors) {
  underflow::Analysis analysis;
  analysis.logs = {"log"};
  analysis.tensors = std::move(tensors);
  return analysis;
}

TEST_CASE("NaN or infinities of a last step are said unless a loss scale explains them",
          "[table]") {
  struct Row {
    const char* what;
    Role role;
    std::optional<Dtype> dtype;
    std::uint64_t nan, inf;
    double carried;
    std::optional<double> told;
    std::optional<bool> skipped;
    bool said;
  };
  constexpr auto grad = Role::weight_grad;
  const Row row = GENERATE(values<Row>({
      {"nothing is there", grad, Dtype::f32, 0, 0, 1, {}, {}, false},
      {"no scale is told, NaN of FP32", grad, Dtype::f32, 1, 0, 1, {}, {}, true},
      {"an unknown scale does not reach FP32", grad, Dtype::f32, 0, 1, 1, {}, {}, true},
      {"FP16 at an unknown scale", grad, Dtype::f16, 0, 1, 1, {}, {}, false},
      {"infinities less infinities are NaN", grad, Dtype::f16, 1, 1, 1, {}, {}, false},
      {"NaN alone are not", grad, Dtype::f16, 1, 0, 1, {}, {}, true},
      {"a dtype that is not known", grad, {}, 0, 1, 1, {}, {}, false},
      {"its NaN", grad, {}, 1, 0, 1, {}, {}, true},
      {"the scale that the values carry", grad, Dtype::f16, 1, 0, 1024, {}, {}, false},
      {"that of the scalars: FP32 of autocast", grad, Dtype::f32, 1, 1, 1, 1024.0, {}, false},
      {"a scale of 1 makes none", grad, Dtype::f16, 0, 1, 1, 1.0, {}, true},
      {"but the step was skipped", grad, Dtype::f16, 0, 1, 1, 1.0, true, false},
      {"BF16 at any scale", grad, Dtype::bf16, 0, 1, 1, 1024.0, {}, true},
      {"no scale acts on activations", Role::activation, Dtype::f16, 0, 1, 1, 1024.0, true, true},
      {"nor on the loss", Role::loss, Dtype::f32, 1, 0, 1, 1024.0, true, true},
  }));
  CAPTURE(row.what);
  underflow::TensorFindings tensor = tensor_of(row.role, row.dtype);
  add(tensor, 0, 0, 0, row.carried);
  add(tensor, 7, row.nan, row.inf, row.carried);
  underflow::Analysis analysis = analysis_of({tensor});
  if (row.told || row.skipped) {
    analysis.scalars.emplace_back("log", scalars_of(7, row.told, row.skipped));
  }
  CHECK(overflow::broken_ends(analysis).size() == (row.said ? 1 : 0));
}

TEST_CASE("The last steps are told with how many they are and the tensor that comes first") {
  underflow::TensorFindings gradient = tensor_of(Role::weight_grad, Dtype::f32);
  underflow::TensorFindings activation = tensor_of(Role::activation, Dtype::f32);
  add(gradient, 0, 1, 0);
  for (const std::int64_t step : {10, 20, 30, 40}) {
    add(gradient, step, step == 10 ? 0 : 1, 0);
    add(activation, step, 0, step == 40 || step == 20 ? 1 : 0);
  }
  const auto ends = overflow::broken_ends(analysis_of({gradient, activation}));
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].tensor == "activation");
  CHECK(ends[0].first == 20);
  CHECK(ends[0].last == 40);
  CHECK(ends[0].steps == 3);
  CHECK(ends[0].also == 1);
  CHECK((ends[0].nan && ends[0].inf));
  add(gradient, 50, 0, 0);
  CHECK(overflow::broken_ends(analysis_of({gradient, activation})).empty());
}

TEST_CASE("Magnitudes without counts end in NaN, too") {
  underflow::Analysis analysis = analysis_of({});
  for (const double max_abs : std::vector<double>{1.0, NAN, NAN}) {
    const auto step = static_cast<std::int64_t>(analysis.peaks.size());
    analysis.peaks.emplace_back("log",
                                frames::StepPeak{Role::weight_grad, step, max_abs, {}, "layer"});
  }
  REQUIRE(overflow::broken_ends(analysis).size() == 1);
  CHECK(overflow::broken_ends(analysis)[0].first == 1);
  analysis.peaks[2].second.loss_scale = 1024;
  CHECK(overflow::broken_ends(analysis).empty());  // the last is of that scale
  analysis.peaks[2].second = {Role::weight_grad, 2, INFINITY, {}, "layer"};
  CHECK(overflow::broken_ends(analysis).empty());
}

TEST_CASE("A run log's scalars are judged as another tool's") {
  underflow::Analysis analysis = analysis_of({});
  CHECK(scale_history::run_log_scalars(analysis).empty());
  analysis.manifests.emplace_back("log", log::Manifest());
  CHECK(scale_history::run_log_scalars(analysis).empty());
  for (std::int64_t step = 0; step < 30; ++step) {
    analysis.scalars.emplace_back("log", scalars_of(step, 1024, step >= 10));
  }
  analysis.scalars.emplace_back("other", scalars_of(99, 1));
  const auto all = scale_history::run_log_scalars(analysis);
  REQUIRE(all.size() == 1);
  CHECK(all[0].scalars.size() == 30);
  scale_history::TimelineFacts facts = scale_history::timeline_facts(all[0]).at(0);
  REQUIRE(facts.in_vain);
  CHECK(facts.in_vain->first == 10);
  CHECK(scale_history::skips_at_static_scale(facts));
  facts.scale_last = 1;
  CHECK_FALSE(scale_history::skips_at_static_scale(facts));
  facts.scale_last = 1024;
  facts.changes.push_back({0, 5, 2048, 1024});
  CHECK_FALSE(scale_history::skips_at_static_scale(facts));
  CHECK(scale_history::timeline_facts(analysis).empty());  // of its own it is none
}

TEST_CASE("No step is held where all that are recorded may overflow at the scale") {
  recommend::Recommendation advice;
  advice.static_log2 = 22;
  advice.limited_by = recommend::Limit{"log", "weight_grad/a", 0, 0x1p-8, true};
  CHECK_FALSE(recommend::no_step_held(advice));  // no chance is told
  advice.skip = recommend::SkipBound();
  CHECK_FALSE(recommend::no_step_held(advice));  // of no steps
  advice.skip->steps = 60;
  advice.skip->exceedances = 20;
  advice.skip->perhaps = 40;
  CHECK(recommend::no_step_held(advice));
  advice.skip->perhaps = 39;
  CHECK_FALSE(recommend::no_step_held(advice));
  advice.skip->perhaps = 40;
  advice.limited_by->censored = false;
  CHECK_FALSE(recommend::no_step_held(advice));
}

}  // namespace
}  // namespace halfscope::analyzers
