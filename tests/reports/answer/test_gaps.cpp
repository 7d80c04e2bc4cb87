// SPDX-License-Identifier: Apache-2.0
// What is said of a log that could not tell something.
#include "reports/answer/gaps.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "catch.hpp"
#include "reports/answer/series.hpp"
#include "reports/export/json_parts.hpp"
#include "reports/page/page.hpp"
#include "reports/page/sections.hpp"
#include "reports/sample_foreign.hpp"

namespace test_gaps {

using namespace halfscope;
using namespace halfscope::reports;
using analyzers::frames::Gap;
using analyzers::frames::Tool;
using answer::Framework;

/// The sentence of a gap; empty where it is not told.
std::string said(const std::vector<answer::LogGaps>& all, Gap gap) {
  for (const answer::LogGaps& log : all) {
    for (const answer::Unknown& unknown : log.unknown) {
      if (unknown.gap == gap) return unknown.text;
    }
  }
  return "";
}

std::string said(const analyzers::underflow::Analysis& analysis, Gap gap) {
  return said(answer::could_not_tell(analysis), gap);
}

analyzers::underflow::Analysis of_kind(const std::string& name, std::vector<Gap> gaps) {
  analyzers::underflow::Analysis out;
  out.logs.resize(1);
  out.logs[0].name = "log";
  out.logs[0].kinds = {{name, std::move(gaps)}};
  return out;
}

analyzers::frames::StepPeak peak(const std::string& tensor, std::int64_t step, double most,
                                 std::optional<double> least = {}) {
  analyzers::frames::StepPeak out;
  out.role = log::Role::weight_grad;
  out.step = step;
  out.max_abs = most;
  out.tensor = tensor;
  out.at_least = least;
  return out;
}

const std::vector<Gap> kAllGaps = {Gap::zeros,   Gap::underflow,  Gap::nonfinite, Gap::rounded,
                                   Gap::dtype,   Gap::loss_scale, Gap::counts,    Gap::tensors,
                                   Gap::updates, Gap::steps,      Gap::every_step};

TEST_CASE("a log of our own leaves nothing to tell", "[reports][gaps]") {
  CHECK(answer::could_not_tell({}).empty());
  CHECK(page::gaps_html({}).empty());
  exports::Json json = exports::Json::object();
  exports::put_gaps(json, {});
  CHECK(json.empty());
}

TEST_CASE("zeros and tiny values in one bucket are told with what follows", "[reports][gaps]") {
  analyzers::underflow::Analysis analysis = of_kind("TensorBoard histograms", {Gap::zeros});
  auto tensor = sample::foreign_tensor("log", "gradients/a");
  BoundedTable table;
  table.add(sample::bucket(0, 1e-12, 40));        // zeros, perhaps
  table.add(sample::bucket(1e-10, 1.1e-10, 10));  // flushed
  table.add(sample::bucket(2.9e-8, 3.2e-8, 5));   // on both sides of 2^-25
  table.add(sample::bucket(0.5, 0.6, 45));
  sample::add_step(tensor, 0, table);
  analysis.logs[0].tensors = {tensor};
  CHECK(said(analysis, Gap::zeros) ==
        "40 of 100 gradient values lie in a bucket with zero: they are zeros, or smaller than "
        "1e-12. If they are zeros, 16.7 % to 25.0 % of the others become zero in "
        "FP16 at scale 1; if none is, 55.0 % of all.");
  analysis.logs[0].tensors[0].loss_scaled = false;
  CHECK(said(analysis, Gap::zeros).starts_with("40 of 100 values lie"));
}

TEST_CASE("a gap without consequence is no gap", "[reports][gaps]") {
  analyzers::underflow::Analysis analysis = of_kind(
      "TensorBoard histograms",
      {Gap::zeros, Gap::underflow, Gap::loss_scale, Gap::every_step, Gap::counts, Gap::tensors});
  auto tensor = sample::foreign_tensor("log", "gradients/a");
  BoundedTable table;
  table.add(sample::bucket(0.5, 0.6, 45));
  sample::add_step(tensor, 7, table);
  sample::add_step(tensor, 8, table);
  tensor.per_step.change([](auto& step) { step.scale = 1024; });  // --recorded-scale told it
  analysis.logs[0].tensors = {tensor};
  CHECK(answer::could_not_tell(analysis).empty());
  analyzers::underflow::StepList& steps = analysis.logs[0].tensors[0].per_step;
  steps.change([](auto& step) { step.step = step.step == 8 ? 10 : step.step; });
  CHECK(said(analysis, Gap::every_step) ==
        "The log has 2 of the steps from 7 to 10: an overflow at another step is not seen.");
  steps.change([](auto& step) { step.scale = 1; });
  CHECK(said(analysis, Gap::loss_scale).find("--recorded-scale TAG") != std::string::npos);
}

TEST_CASE("underflow behind wide buckets is not identifiable", "[reports][gaps]") {
  analyzers::underflow::Analysis analysis =
      of_kind("Weights & Biases histograms", {Gap::zeros, Gap::underflow, Gap::nonfinite});
  for (const char* name : {"weight_grad/x", "weight_grad/y"}) {
    auto tensor = sample::foreign_tensor("log", name);
    tensor.hidden_by_buckets = true;
    BoundedTable table;
    table.add(sample::bucket(0, 1e-3, name[12] == 'x' ? 983 : 900));
    table.add(sample::bucket(1e-3, 2e-3, name[12] == 'x' ? 17 : 100));
    table.set_nonfinite_unknown();
    sample::add_step(tensor, 0, table);
    analysis.logs[0].tensors.push_back(tensor);
  }
  CHECK(said(analysis, Gap::underflow) ==
        "Underflow to zero in FP16 is not identifiable: a bucket holds zero and values that FP16 "
        "keeps. It is between 0 % and 98.3 % of weight_grad/x at scale 1, and in 1 tensor more.");
  CHECK(said(analysis, Gap::zeros).empty());  // the same said twice
  CHECK(
      said(analysis, Gap::nonfinite) ==
      "Infinities and NaN were dropped without a count in 2 tensors, so overflow in the run itself "
      "is unknown.");
}

TEST_CASE("printed digits are bounds", "[reports][gaps]") {
  analyzers::underflow::Analysis analysis =
      of_kind("Transformer Engine statistics", {Gap::rounded, Gap::counts});
  analysis.logs[0].peaks = {peak("a", 0, 5e-5, 0.0), peak("a", 1, 0.01005, 0.00995),
                            peak("b", 1, 2.0)};
  CHECK(said(analysis, Gap::rounded) ==
        "The log prints few digits: 2 of 3 magnitudes are known only between two bounds, "
        "1 of them only to be at most 5e-05.");
  CHECK(said(analysis, Gap::counts) ==
        "The log has maximum magnitudes but no histograms, so underflow cannot be measured; the "
        "largest "
        "magnitudes of 2 tensors at 2 steps bound a loss scale from above.");
}

TEST_CASE("what most depends on comes first, and every gap has words", "[reports][gaps]") {
  analyzers::underflow::Analysis analysis = sample::tensorboard_study().analysis;
  analysis.logs[0].kinds[0].gaps = kAllGaps;
  const std::vector<answer::LogGaps> all = answer::could_not_tell(analysis);
  REQUIRE(all.size() == 1);
  CHECK(all[0].kind == "TensorBoard histograms");
  CHECK(all[0].unknown.front().gap == Gap::zeros);
  CHECK(all[0].unknown.back().gap == Gap::updates);
  std::set<std::string_view> names;
  for (const Gap gap : kAllGaps) names.insert(answer::name_of(gap));
  CHECK(names.size() == kAllGaps.size());
  analysis.logs[0].tensors.clear();
  for (const Gap gap : {Gap::tensors, Gap::rounded, Gap::nonfinite, Gap::dtype, Gap::loss_scale,
                        Gap::steps, Gap::every_step, Gap::updates}) {
    CAPTURE(answer::name_of(gap));
    CHECK(said(analysis, gap).ends_with("."));
  }
}

TEST_CASE("kinds of one folder are one log", "[reports][gaps]") {
  analyzers::underflow::Analysis analysis = sample::tensorboard_study().analysis;
  analysis.logs[0].kinds.push_back({.name = "DeepSpeed CSV files",
                                    .gaps = {Gap::tensors, Gap::updates},
                                    .tool = Tool::deepspeed});
  const std::vector<answer::LogGaps> all = answer::could_not_tell(analysis);
  REQUIRE(all.size() == 1);
  CHECK(all[0].kind == "TensorBoard histograms and DeepSpeed CSV files");
  CHECK(all[0].recording.lines == answer::recording_for(Framework::deepspeed).lines);
  CHECK(said(all, Gap::tensors).empty());  // the other kind has them
  CHECK(std::ranges::count(all[0].unknown, Gap::updates, &answer::Unknown::gap) == 1);
}

TEST_CASE("the lines to record with are those of the log's tool", "[reports][gaps]") {
  CHECK(answer::recording_for(Framework::deepspeed).lines.find("safe_get_full_grad") !=
        std::string_view::npos);
  for (const Framework framework :
       {Framework::pytorch, Framework::deepspeed, Framework::tensorflow, Framework::paddle}) {
    const std::string_view lines = answer::recording_for(framework).lines;
    CHECK(std::ranges::count(lines, '\n') == 2);  // three lines
  }
  const auto of_keras = answer::could_not_tell(sample::linear_study().analysis);
  CHECK(of_keras.front().recording.lines.find("trainable_variables") != std::string_view::npos);
  const auto of_torch = answer::could_not_tell(sample::tensorboard_study().analysis);
  CHECK(of_torch.front().recording.lines.find("Recorder(") != std::string_view::npos);
}

TEST_CASE("names in the block are text", "[reports][gaps]") {
  analyzers::underflow::Analysis analysis = sample::linear_study().analysis;
  const std::string bad = "<img src=x onerror=alert(1)>\x1b[31m";
  for (auto& tensor : analysis.logs[0].tensors) tensor.name += bad;
  analysis.logs[0].kinds[0].name += bad;
  const std::string html = page::gaps_html(analysis);
  CHECK(html.find("<img") == std::string::npos);
  CHECK(html.find('\x1b') == std::string::npos);
  CHECK(html.find("&lt;img src=x") != std::string::npos);
}

TEST_CASE("shares hold all that the bounds allow", "[reports][shares]") {
  // 10 surely flushed, 60 zero or flushed, 5 on both sides of 2^-25, 25 normal.
  const Classes classes = {{10, 75}, {0, 5}, 25, 0};
  const Interval of = {40, 100};
  const Bounds flushed = answer::class_share(classes, &Classes::flushed_to_zero, of);
  CHECK(flushed.low == 10.0 / 40);
  CHECK(flushed.high == 75.0 / 100);
  const Bounds normal = answer::class_share(classes, &Classes::normal, of);
  CHECK(normal.low == 25.0 / 100);
  CHECK(normal.high == 25.0 / 40);
  // 90 zero or of any class, 10 surely flushed: they may be few among many.
  const Classes hidden = {{10, 100}, {0, 90}, {0, 90}, 0};
  CHECK(answer::class_share(hidden, &Classes::flushed_to_zero, {10, 100}).low == 0.1);
  CHECK(answer::class_share(hidden, &Classes::flushed_to_zero, {10, 100}).high == 1);
  CHECK(answer::class_share({}, &Classes::subnormal, 0) == Bounds{0, 0});
  CHECK(answer::class_share({3, 0, 1, 0}, &Classes::flushed_to_zero, 4) == Bounds{0.75, 0.75});
}

}  // namespace test_gaps
