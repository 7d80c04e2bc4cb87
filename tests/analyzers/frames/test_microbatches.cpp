// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/microbatches.hpp"

#include <cmath>
#include <vector>
#include "catch.hpp"

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/recommend/parts.hpp"
#include "analyzers/series_logs.hpp"
#include "analyzers/study.hpp"

namespace halfscope::analyzers::test_microbatches {
namespace {

/// A step whose weight gradients add up to `sum`; the largest of its two microbatches are `parts`.
log::StepScalars accumulated(std::int64_t number, double sum, const std::vector<double>& parts) {
  log::StepScalars s = step(number, sum, {}, 1.0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    s.more["max_abs/weight_grad/microbatch-" + std::to_string(i)] = parts[i];
  }
  return s;
}

log::TensorRecord held_in(Dtype dtype, float value, std::int64_t number = 0) {
  log::TensorRecord record = record_of("weight_grad/a.weight", number, {value});
  record.source_dtype = dtype;
  return record;
}

Study study_of(const Scalars& scalars, const Records& records,
               const frames::Selection& selection = {}, log::Manifest manifest = {}) {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", std::move(manifest));
    for (const auto& s : scalars) writer.write(s);
    for (const auto& r : records) writer.write(r);
  }
  return study(findings_of(underflow::analyze({folder / "run"}, {}, selection)), selection, {});
}

TEST_CASE("The largest part is over the weight gradients of microbatches, infinity and NaN too") {
  log::StepScalars s;
  CHECK_FALSE(frames::largest_part(s));
  s.more = {{"max_abs/weight_grad/microbatch-0", 2},
            {"max_abs/weight_grad/microbatch-10", 8},
            {"max_abs/weight_grad/attempt-0", 64},
            {"max_abs/activation_grad/microbatch-0", 16}};
  CHECK(frames::largest_part(s) == 8);
  s.more["max_abs/weight_grad/microbatch-1"] = kInf;
  CHECK(frames::largest_part(s) == kInf);
  s.more["max_abs/weight_grad/microbatch-11"] = NAN;
  CHECK(std::isnan(*frames::largest_part(s)));
}

TEST_CASE("A policy skips a step by what FP16 holds: parts of an FP32 sum, else the sum",
          "[table]") {
  struct Row {
    const char* what;
    Records records;
    log::StepScalars last;
    bool overflows;  ///< at scale 1024: 64 and more
  };
  const Row row = GENERATE(values<Row>({
      {"FP32 holds the sum", {held_in(Dtype::f32, 1)}, accumulated(1, 100, {50, 50}), false},
      {"a part overflows", {held_in(Dtype::f32, 1)}, accumulated(1, 100, {70, 50}), true},
      {"though the sum does not", {held_in(Dtype::f32, 1)}, accumulated(1, 20, {70, 50}), true},
      {"FP16 holds the sum", {held_in(Dtype::f16, 1)}, accumulated(1, 100, {50, 50}), true},
      {"bfloat16 does: no autocast", {held_in(Dtype::bf16, 1)}, accumulated(1, 100, {50}), true},
      {"nobody says what holds it", {}, accumulated(1, 100, {50, 50}), true},
      {"one microbatch", {held_in(Dtype::f32, 1)}, accumulated(1, 100, {}), true},
      {"of one microbatch all is known", {held_in(Dtype::f32, 1)}, accumulated(1, 50, {}), false},
      {"the table is a sum too", {held_in(Dtype::f32, 100, 1)}, accumulated(1, 9, {5, 5}), false},
      {"an infinite sum", {held_in(Dtype::f32, 1)}, accumulated(1, kInf, {50, 50}), true},
  }));
  CAPTURE(row.what);
  const replay::StepSeries series = read({accumulated(0, 2, {1, 1}), row.last}, row.records);
  const replay::Trace trace = at_scale(series, "1024");
  CHECK(trace.unknown.empty());
  CHECK(trace.skipped == (row.overflows ? Steps{1} : Steps{}));
  // Policies that follow weight gradients see the sum, whatever holds it.
  CHECK(series.seen[1].weights >= *row.last.max_abs_weight_grad);
}

TEST_CASE("Of several ranks parts count where all of them tell theirs") {
  const Scalars both = {accumulated(0, 100, {50}), accumulated(1, 100, {40})};
  Scalars other = both;
  CHECK(at_scale(read_ranks({both, other}, {held_in(Dtype::f32, 1)}), "1024").skipped.empty());
  other[1].more["max_abs/weight_grad/microbatch-0"] = 70;
  CHECK(at_scale(read_ranks({both, other}, {held_in(Dtype::f32, 1)}), "1024").skipped == Steps{1});
  other[1].more.clear();
  CHECK(at_scale(read_ranks({both, other}, {held_in(Dtype::f32, 1)}), "1024").skipped == Steps{1});
}

TEST_CASE("Parts whose scale is not known leave the sum as the bound") {
  log::StepScalars last = accumulated(1, 100, {50, 50});
  last.loss_scale.reset();
  const replay::StepSeries series =
      read({accumulated(0, 2, {1, 1}), last}, {held_in(Dtype::f32, 1)},
           manifest_of(log::ScaleState::scaled));
  CHECK(at_scale(series, "1024").skipped == Steps{1});
}

TEST_CASE("The recommended scale is bounded by parts, and by the sum for parameters in FP16") {
  const Scalars scalars = {accumulated(0, 100, {20, 30}), accumulated(1, 40, {30, 10})};
  const Study fp32 = study_of(scalars, {held_in(Dtype::f32, 100), held_in(Dtype::f32, 40, 1)});
  CHECK(fp32.advice.highest_log2 == 10);         // 30 * 2^11 < 65520
  CHECK(fp32.advice.highest_if_half_log2 == 8);  // 100 * 2^9 < 65520
  CHECK(fp32.advice.limited_by->max_abs == 30);
  CHECK(fp32.advice.limited_by->from_scalars);
  for (const recommend::LogMaxima& log : fp32.advice.peaks.logs) {
    for (const recommend::StepMaximum& step : log.steps) CHECK(step.highest_log2 == 11);
  }
  for (const recommend::ScaleEvidence& at : fp32.advice.scales) {
    CHECK(at.overflow_steps == Interval(at.log2_scale > 11 ? 2 : 0));
  }
  // As before where FP16 holds the sum, and where there is one microbatch.
  const Study half = study_of(scalars, {held_in(Dtype::f16, 100), held_in(Dtype::f16, 40, 1)});
  CHECK(half.advice.highest_log2 == 8);
  CHECK_FALSE(half.advice.highest_if_half_log2);
  const Study one = study_of({accumulated(0, 100, {})}, {held_in(Dtype::f32, 100)});
  CHECK(one.advice.highest_log2 == 8);
  CHECK_FALSE(one.advice.highest_if_half_log2);
}

TEST_CASE("Parts carry the scale of their step where gradients do") {
  log::StepScalars s = accumulated(0, 100, {20 * 64.0, 30 * 64.0});
  s.loss_scale = 64;
  log::TensorRecord record = record_of("weight_grad/a.weight", 0, {6400.0f}, 64);
  const Study all = study_of({s}, {record}, {}, manifest_of(log::ScaleState::scaled));
  CHECK(all.advice.limited_by->max_abs == 30);
  CHECK(all.advice.highest_log2 == 10);
}

TEST_CASE("Sums that are selected by name are judged as they are") {
  frames::Selection selection;
  selection.tensor_glob = "weight_grad/*";
  const Study all =
      study_of({accumulated(0, 100, {20, 30})}, {held_in(Dtype::f32, 100)}, selection);
  CHECK(all.advice.highest_log2 == 8);
}

TEST_CASE("What would overflow at a scale is what FP16 holds") {
  const Scalars scalars = {accumulated(0, 100, {20, 30})};
  const Records records = {held_in(Dtype::f32, 100)};
  const auto events_at = [&](double scale) {
    frames::Selection selection;
    selection.loss_scale = scale;
    return study_of(scalars, records, selection).overflow.events;
  };
  CHECK(events_at(1024).empty());  // 100 * 1024 is beyond 65520, 30 * 1024 is not
  REQUIRE(events_at(4096).size() == 1);
  CHECK(events_at(4096)[0].safe_log2 == 11);
}

}  // namespace
}  // namespace halfscope::analyzers::test_microbatches
