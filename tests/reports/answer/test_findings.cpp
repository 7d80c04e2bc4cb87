// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/findings.hpp"

#include <algorithm>

#include "catch.hpp"
#include "reports/answer/text.hpp"

namespace test_findings {

using namespace halfscope;
using namespace halfscope::reports;
using analyzers::Study;
using analyzers::overflow::Cause;

analyzers::overflow::OverflowEvent event(Cause cause, std::string tensor, std::int64_t step) {
  analyzers::overflow::OverflowEvent out;
  out.step = out.last_step = step;
  out.tensor = std::move(tensor);
  out.cause = cause;
  if (cause == Cause::nan_in_model) out.nan = 3;
  if (cause == Cause::undetermined) out.inf = 3;
  return out;
}

/// One gradient tensor: `tiny` values at 2^-30, `rest` values of `value`.
analyzers::underflow::TensorFindings gradient(std::uint64_t tiny, std::uint64_t rest,
                                              double value) {
  analyzers::underflow::TensorFindings out;
  out.name = "weight_grad/a";
  out.role = log::Role::weight_grad;
  out.loss_scaled = true;
  BinadeTable table;
  table.add({-30, 0}, false, tiny);
  table.add(magnitude_of(value), false, rest);
  out.tables = {{1.0, table}};
  out.counts.total = tiny + rest;
  out.counts.classes = out.classes_at({}, 0);
  return out;
}

Study with_gradients(std::uint64_t tiny, std::uint64_t rest, double value) {
  Study out;
  out.analysis.logs.resize(1);
  out.analysis.logs[0].name = "run";
  out.analysis.logs[0].tensors = {gradient(tiny, rest, value)};
  static_cast<analyzers::Findings&>(out) = analyzers::findings_of(std::move(out.analysis));
  out.advice.flushed_at_1 = {tiny, tiny + rest};
  out.advice.flushed_at_recommended = {0, tiny + rest};
  out.advice.static_log2 = 6;
  return out;
}

UpdateTable lost_updates(std::uint64_t lost, std::uint64_t of) {
  UpdateTable out;
  out.counts.pairs = of;
  out.counts.half.swamped = lost;
  out.counts.half.applied = of - lost;
  return out;
}

std::shared_ptr<const analyzers::underflow::UpdateFindings> updates_of(
    const UpdateTable& table, std::optional<Dtype> kept_in = {}) {
  analyzers::underflow::UpdateFindings found;
  found.table = table;
  found.kept_in = kept_in;
  return std::make_shared<const analyzers::underflow::UpdateFindings>(std::move(found));
}

/// A study with every finding in it.
Study everything() {
  Study out = with_gradients(500, 500, 0x1p-26);
  out.overflow.events = {event(Cause::undetermined, "activation_grad/u", 4),
                         event(Cause::by_scale, "weight_grad/s", 3),
                         event(Cause::at_scale_1, "activation/o", 2),
                         event(Cause::nan_in_model, "activation/n", 1)};
  out.overflow.events[1].safe_log2 = 5;
  out.advice.nan_in_model = {"run", "activation/n", 1, true};
  analyzers::underflow::TensorFindings weight;
  weight.name = "weight/w";
  weight.role = log::Role::weight;
  weight.updates = updates_of(lost_updates(610, 1000), Dtype::f16);
  out.analysis.logs[0].tensors.push_back(weight);
  analyzers::recommend::LayerScale layer;
  layer.layer = "conv1";
  out.advice.per_layer = {layer};
  analyzers::recommend::KeepInFp32 keep;
  keep.name = "softmax";
  keep.binades_gained = 5;
  out.advice.keep_in_fp32 = {keep};
  analyzers::overflow::Headroom thin;
  thin.tensor = 1;
  thin.least = 0.25;
  out.overflow.headroom = {thin};
  analyzers::recommend::Footprint memory;
  memory.bytes_fp32 = 168000000;
  memory.bytes_fp16 = 84000000;
  memory.bytes_mixed = 188000000;
  memory.not_multiples_of_8 = {{"weight/w", {10}}};
  out.advice.footprint = memory;
  return out;
}

std::string words(const std::vector<answer::Finding>& all, std::size_t i) {
  return answer::plain(text_of(all.at(i)));
}

TEST_CASE("findings come in order of harm", "[reports][findings]") {
  const std::vector<answer::Finding> all = answer::findings(everything());
  const char* const in_order[] = {
      "NaN in the model from step 1, first in activation/n",
      "Weights are stored in FP16, and 61.0 % of 1,000 sampled weight",
      "activation/o at step 2 overflows FP16 without any loss scale",
      "loss scale is too large: weight_grad/s at step 3 overflows",
      "Infinity in activation_grad/u at step 4",
      "50.0 % of the gradient values become zero",
      "No single loss scale serves every tensor",
      "1 tensor comes within one binade of overflow, at 0.25",
      "1 tensor has a large dimension that is not a multiple of 8: weight/w"};
  REQUIRE(all.size() == std::size(in_order));
  for (std::size_t i = 0; i < all.size(); ++i)
    CHECK_THAT(words(all, i), Catch::Contains(in_order[i]));
  CHECK(std::is_sorted(
      all.begin(), all.end(),
      [](const answer::Finding& a, const answer::Finding& b) { return a.severity < b.severity; }));
  CHECK_THAT(words(all, 3), Catch::Contains("A loss scale of 32 (2^5) would have held"));
  CHECK_THAT(words(all, 6),
             Catch::Contains("Keep softmax in FP32 and the scale can rise by 5 binades"));
}

TEST_CASE("nothing is told of what was not found", "[reports][findings]") {
  CHECK(answer::findings({}).empty());
  CHECK(answer::findings(with_gradients(0, 1000, 0.5)).empty());
  Study weights;
  weights.analysis.logs.resize(1);
  weights.analysis.logs[0].tensors.resize(1);
  weights.analysis.logs[0].tensors[0].updates = updates_of(lost_updates(0, 1000));
  CHECK(answer::findings(weights).empty());
}

TEST_CASE("little lost mass lowers the harm of many lost values", "[reports][findings]") {
  // The same half of the values is lost: beside values as small, and beside values that carry all.
  const std::vector<answer::Finding> heavy = answer::findings(with_gradients(500, 500, 0x1p-26));
  const std::vector<answer::Finding> light = answer::findings(with_gradients(500, 500, 0.5));
  REQUIRE(heavy.size() == 1);
  REQUIRE(light.size() == 1);
  CHECK(heavy[0].severity == answer::Severity::serious);
  CHECK(light[0].severity == answer::Severity::note);
  CHECK_THAT(light[0].title, Catch::Contains("50.0 % of the gradient values become zero"));
  CHECK_THAT(light[0].title, Catch::Contains("too little to affect training"));
  CHECK_THAT(heavy[0].action, Catch::Contains("At a loss scale of 64 (2^6) it is 0 %"));
}

TEST_CASE("layers that lose little mass at the one scale are no harm", "[reports][findings]") {
  Study study;
  study.advice.static_log2 = 10;
  study.advice.per_layer.resize(1);
  study.advice.per_layer[0].layer = "conv1";
  study.advice.lost_at_recommended = MassShare{{0.5, 0.5}, {0.5, 0.5}};
  CHECK(answer::findings(study)[0].severity == answer::Severity::warning);
  study.advice.lost_at_recommended = MassShare{{0, 1e-6}, {0, 1e-6}};
  CHECK(answer::findings(study).empty());
}

TEST_CASE("a few lost updates are no finding, many break a run in FP16", "[reports][findings]") {
  Study study;
  study.analysis.logs.resize(1);
  study.analysis.logs[0].tensors.resize(1);
  const auto severity_at = [&](std::uint64_t lost, Dtype kept_in = Dtype::f16) {
    study.analysis.logs[0].tensors[0].updates = updates_of(lost_updates(lost, 100000), kept_in);
    const auto all = answer::findings(study);
    return all.empty() ? "none" : std::string(answer::name_of(all[0].severity));
  };
  CHECK(severity_at(99) == "none");
  CHECK(severity_at(100) == "warning");
  CHECK(severity_at(5000) == "breaks");
  CHECK(severity_at(5000, Dtype::f32) == "note");   // nothing is lost
  CHECK(severity_at(5000, Dtype::bf16) == "note");  // by the rules of the other format
}

TEST_CASE("each weight's own format says whether its updates are lost", "[reports][findings]") {
  Study study;
  study.analysis.logs.resize(1);
  std::vector<analyzers::underflow::TensorFindings>& tensors = study.analysis.logs[0].tensors;
  tensors.resize(3);
  tensors[0].updates = updates_of(lost_updates(400, 1000), Dtype::f32);
  tensors[1].updates = updates_of(lost_updates(700, 1000), Dtype::f16);
  tensors[2].updates = updates_of(lost_updates(800, 1000), Dtype::f16);
  const std::vector<answer::Finding> all = answer::findings(study);
  REQUIRE(all.size() == 2);
  CHECK(all[0].severity == answer::Severity::breaks);
  CHECK(words(all, 0).starts_with(
      "2 of 3 weight tensors are stored in FP16: 75.0 % of 2,000 sampled weight updates are lost "
      "there: all of these are rounded away in the sum. Use FP32 master weights"));
  CHECK(all[1].severity == answer::Severity::note);
  CHECK(
      words(all, 1).starts_with("If the other weights were stored in FP16 too, 40.0 % of 1,000 "));
}

TEST_CASE("names in findings are made printable", "[reports][findings]") {
  Study study;
  study.overflow.events = {event(Cause::undetermined, "activation/\x1b[31mred", 1)};
  const std::vector<answer::Finding> all = answer::findings(study);
  REQUIRE(all.size() == 1);
  CHECK(all[0].title.find('\x1b') == std::string::npos);
  CHECK_THAT(all[0].title, Catch::Contains("\\x1B[31mred"));
}

TEST_CASE("a magnitude is said of one tensor beyond the format, not of several",
          "[reports][findings]") {
  Study study = with_gradients(0, 1000, 0.5);
  study.analysis.logs[0].tensors[0].max_abs = 0x1p19;
  study.advice.overflow_without_cure = {"weight_grad/a"};
  CHECK(
      words(answer::findings(study), 0).starts_with("weight_grad/a reaches 524288 (2^19.0), too "));
  study.advice.overflow_without_cure = {"weight_grad/a", "activation/b"};
  CHECK(words(answer::findings(study), 0)
            .starts_with("weight_grad/a, activation/b are too large for FP16, and a loss"));
}

TEST_CASE("An event that lasts is named, unless NaN in the model is no later", "[table]") {
  struct Row {
    const char* what;
    std::optional<std::int64_t> nan;
    bool named;
  };
  const Row row = GENERATE(values<Row>({{"no NaN", std::nullopt, true},
                                        {"NaN before", 3, false},
                                        {"at the same step", 4, false},
                                        {"NaN after it began", 5, true}}));
  CAPTURE(row.what);
  Study study;
  study.overflow.events = {event(Cause::at_scale_1, "activation/a", 4)};
  study.overflow.events[0].last_step = 9;
  study.overflow.events[0].to_the_end = true;
  if (row.nan) study.advice.nan_in_model.emplace().step = *row.nan;
  const auto named = [&] {
    return std::ranges::count(answer::findings(study), "lasting_failure", &answer::Finding::id);
  };
  CHECK(named() == (row.named ? 1 : 0));
  study.overflow.events.clear();
  CHECK(named() == 0);  // nothing lasts
}

}  // namespace test_findings
