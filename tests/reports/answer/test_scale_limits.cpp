// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/reduction.hpp"
#include "reports/answer/scale.hpp"

#include "analyzers/recommend/recommend.hpp"
#include "catch.hpp"

namespace halfscope::reports::answer::test_scale_limits {
namespace {

using analyzers::recommend::Footprint;
using analyzers::recommend::KeepInFp32;
using Kind = KeepInFp32::Kind;
using Why = KeepInFp32::Why;

TEST_CASE("why something is kept in FP32 is one sentence a reason", "[table]") {
  struct Row {
    KeepInFp32 keep;
    const char *kind, *why;
  };
  const Row row = GENERATE(values<Row>({
      {{"t", Kind::tensor, Why::overflows},
       "tensor",
       "its values overflow whatever the loss scale"},
      {{"t", Kind::tensor, Why::limits_scale, 0, 0, 3, 7, 4},
       "tensor",
       "its gradients allow a scale of 2^3 at most, all others 2^7"},
      {{"m", Kind::softmax, Why::exponential, 12, 65504},
       "softmax",
       "its inputs reach 12: autocast runs it in FP32, and libraries subtract the maximum first; "
       "by hand, e^12 is beyond binary16's largest, 65504"},
      {{"m", Kind::normalization, Why::square, 300, 65504},
       "normalization",
       "its inputs reach 300, whose square is beyond binary16's largest, 65504"},
      {{"m", Kind::reduction, Why::sum_of_squares, 1e6, 65504},
       "reduction",
       "the squares of its inputs add up to 1e+06, beyond binary16's largest, 65504"},
      {{"t", Kind::logits, Why::softmax_after, 12, 65504},
       "logits",
       "autocast runs a softmax or cross entropy after it in FP32: cast neither by hand; the last "
       "activation reaches 12, and e^12 is beyond binary16's largest, 65504"},
      {{"loss", Kind::loss, Why::half_loss, 4, 65504},
       "loss",
       "it is held in FP16: at the recommended scale the loss, 4 at its largest, becomes "
       "1.31e+05, beyond binary16's largest, 65504"},
      {{"loss", Kind::loss, Why::autocast_loss, 4, 65504},
       "loss",
       "autocast keeps it in FP32, do not cast it by hand: at the recommended scale the loss, 4 at "
       "its largest, becomes 1.31e+05, beyond binary16's largest, 65504"},
  }));
  analyzers::recommend::Recommendation advice;
  advice.format = "binary16";
  advice.static_log2 = 15;
  CHECK(name_of(row.keep.kind) == row.kind);
  CHECK(why_text(row.keep, advice) == row.why);
}

TEST_CASE("odd extents are named", "[table]") {
  using Extents = Footprint::Extents;
  CHECK(why_text({"w", {10, 16}, Extents::outputs}) == "10 outputs: no multiple of 8");
  CHECK(why_text({"w", {16, 3, 3}, Extents::inputs}) == "3 inputs: no multiple of 8");
  CHECK(why_text({"w", {10, 3}, Extents::both}) == "10 outputs and 3 inputs: no multiple of 8");
}

TEST_CASE("the line on sums says where they lose much", "[reports]") {
  analyzers::reduction::Reduction sum;
  sum.format = "bfloat16";
  CHECK(reductions_digest({sum}) == "none loses much");
  sum.facts.overflow = 1;
  CHECK(reductions_digest({sum}) == "some lose much unless added in FP32");
  sum.format = "binary32";
  CHECK(reductions_digest({sum}) == "some lose much even in FP32");
}

}  // namespace
}  // namespace halfscope::reports::answer::test_scale_limits
