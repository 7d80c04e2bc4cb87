// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/scale.hpp"

#include "catch.hpp"

namespace halfscope::reports::answer::test_no_scale {
namespace {

using analyzers::recommend::NoScale;

TEST_CASE("why no scale is recommended has a name or a sentence in JSON, and words", "[table]") {
  struct Row {
    NoScale why;
    const char *json, *words;
  };
  const Row row = GENERATE(values<Row>({
      {NoScale::no_gradients, "no_gradients",
       "the log holds no gradients (roles found: weight); name them with --role GLOB=weight_grad"},
      {NoScale::all_zero, "all_zero", "every finite gradient value is zero"},
      {NoScale::no_finite_values, "no_finite_values",
       "no gradient value is finite, or there are none"},
      {NoScale::scale_unknown, "scale_unknown",
       "gradients computed in FP16 hold infinities, and the loss scale they were computed at is "
       "unknown, so their size is unknown too; record the scale with the run, or drop these steps "
       "with --step"},
      {NoScale::unbounded, "unbounded",
       "how large the gradients are is unknown: the log has infinities, or values beyond its "
       "buckets, and no bound for the others"},
      {NoScale::diverges, "diverges", ""},  // without a tensor that limits the scale
  }));
  analyzers::Study study;
  study.advice.no_scale = row.why;
  study.advice.roles_found = {"weight"};
  CHECK(reason_json_text(study.advice) == row.json);
  CHECK(no_scale_text(study) == row.words);
}

TEST_CASE("a target that the recommended scale misses is a sentence in JSON") {
  analyzers::recommend::Recommendation advice;
  advice.static_log2 = advice.highest_log2 = 3;
  CHECK(reason_json_text(advice).empty());
  advice.above_target = {"a", "b"};
  CHECK(reason_json_text(advice) ==
        "with 1 binade of headroom, more than the target is still flushed to zero in a, b");
  advice.lowest_log2 = 4;
  CHECK(missed_text(advice).ends_with("; less headroom would allow a scale that serves them"));
  advice.lowest_log2 = 3;
  CHECK(missed_text(advice).empty());
}

}  // namespace
}  // namespace halfscope::reports::answer::test_no_scale
