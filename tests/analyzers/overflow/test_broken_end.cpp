// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_broken_end {
namespace {

using log::Role;

void add(underflow::TensorFindings& tensor, std::int64_t step, std::uint64_t nan, std::uint64_t inf,
         double scale = 1) {
  underflow::StepFindings found;
  found.step = step;
  found.scale = scale;
  found.counts.nan = nan;
  found.counts.inf = inf;
  tensor.per_step.push_back(found);
}

underflow::TensorFindings tensor_of(Role role, std::optional<Dtype> dtype) {
  underflow::TensorFindings tensor;
  tensor.log = std::string("log");
  tensor.name = log::name_of(role);
  tensor.role = role;
  tensor.source_dtype = dtype;
  tensor.loss_scaled = is_gradient(role);
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
  analysis.logs.resize(1);
  analysis.logs[0].name = "log";
  analysis.logs[0].tensors = std::move(tensors);
  return analysis;
}

/// Of one log: one, or none.
std::vector<overflow::BrokenEnd> ends_of(const underflow::Analysis& analysis) {
  const auto end = overflow::broken_end(analysis.logs.at(0));
  return end ? std::vector{*end} : std::vector<overflow::BrokenEnd>{};
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
      {"a dtype that is unknown", grad, {}, 0, 1, 1, {}, {}, false},
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
    analysis.logs[0].scalars.push_back(scalars_of(7, row.told, row.skipped));
  }
  CHECK(ends_of(analysis).size() == (row.said ? 1 : 0));
}

TEST_CASE("The last steps are told with how many they are and the tensor that comes first") {
  underflow::TensorFindings gradient = tensor_of(Role::weight_grad, Dtype::f32);
  underflow::TensorFindings activation = tensor_of(Role::activation, Dtype::f32);
  add(gradient, 0, 1, 0);
  for (const std::int64_t step : {10, 20, 30, 40}) {
    add(gradient, step, step == 10 ? 0 : 1, 0);
    add(activation, step, 0, step == 40 || step == 20 ? 1 : 0);
  }
  const auto ends = ends_of(analysis_of({gradient, activation}));
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].tensor == "activation");
  CHECK(ends[0].first == 20);
  CHECK(ends[0].last == 40);
  CHECK(ends[0].steps == 3);
  CHECK(ends[0].other_tensors == 1);
  CHECK((ends[0].nan && ends[0].inf));
  add(gradient, 50, 0, 0);
  CHECK(ends_of(analysis_of({gradient, activation})).empty());
}

TEST_CASE("Magnitudes without counts end in NaN, too") {
  underflow::Analysis analysis = analysis_of({});
  for (const double max_abs : std::vector<double>{1.0, NAN, NAN}) {
    const auto step = static_cast<std::int64_t>(analysis.logs[0].peaks.size());
    analysis.logs[0].peaks.push_back(
        frames::StepPeak{Role::weight_grad, step, max_abs, {}, "layer"});
  }
  REQUIRE(ends_of(analysis).size() == 1);
  CHECK(ends_of(analysis)[0].first == 1);
  analysis.logs[0].peaks[2].loss_scale = 1024;
  CHECK(ends_of(analysis).empty());  // the last is of that scale
  analysis.logs[0].peaks[2] = {Role::weight_grad, 2, INFINITY, {}, "layer"};
  CHECK(ends_of(analysis).empty());
}

TEST_CASE("A run log's scalars are judged as another tool's") {
  underflow::Analysis analysis = analysis_of({});
  underflow::LogFindings& log = analysis.logs[0];
  CHECK_FALSE(scale_history::run_log_facts(log));
  log.manifest = log::Manifest();
  CHECK_FALSE(scale_history::run_log_facts(log));
  for (std::int64_t step = 0; step < 30; ++step) {
    log.scalars.push_back(scalars_of(step, 1024, step >= 10));
  }
  auto facts = scale_history::run_log_facts(log);
  REQUIRE(facts);
  CHECK(facts->steps == 30);
  REQUIRE(facts->in_vain);
  CHECK(facts->in_vain->first == 10);
  CHECK(facts->skips_at_static_scale());
  facts->scale_last = 1;
  CHECK_FALSE(facts->skips_at_static_scale());
  facts->scale_last = 1024;
  facts->changes.push_back({0, 5, 2048, 1024});
  CHECK_FALSE(facts->skips_at_static_scale());
  CHECK_FALSE(scale_history::timeline_facts(log));  // of its own it is none
  log.scalars[5].loss_scale = INFINITY;             // can be none
  log.scalars[6].loss_scale = -1;
  CHECK(scale_history::run_log_facts(log)->changes.empty());
}

TEST_CASE("No step is held where all that are recorded may overflow at the scale") {
  recommend::Recommendation advice;
  advice.static_log2 = 22;
  advice.limited_by = recommend::Limit{"log", "weight_grad/a", 0, 0x1p-8, true};
  CHECK_FALSE(advice.all_steps_censored());  // no chance is told
  advice.skip = recommend::SkipBound();
  CHECK_FALSE(advice.all_steps_censored());  // of no steps
  advice.skip->steps = 60;
  advice.skip->exceedances = 20;
  advice.skip->perhaps = 40;
  CHECK(advice.all_steps_censored());
  advice.skip->perhaps = 39;
  CHECK_FALSE(advice.all_steps_censored());
  advice.skip->perhaps = 40;
  advice.limited_by->censored = false;
  CHECK_FALSE(advice.all_steps_censored());
}

}  // namespace
}  // namespace halfscope::analyzers::test_broken_end
