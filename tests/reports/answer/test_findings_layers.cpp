// SPDX-License-Identifier: Apache-2.0
// What is said of factors between layers, and of attention scores.
#include <string>

#include "catch.hpp"
#include "reports/answer/findings.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer::test_findings_layers {
namespace {

using analyzers::Study;
using analyzers::overflow::AttentionScores;
using analyzers::overflow::LayerShift;

std::string said_of(const Study& study) {
  std::string text;
  for (const Finding& finding : findings(study)) {
    text += std::string(name_of(finding.severity)) + ": " + plain(text_of(finding)) + "\n";
  }
  return text;
}

LayerShift shift() {
  LayerShift out;
  out.activation = "activation/relu1";
  out.max_abs = 100000;
  out.layer = "conv1";
  out.next = "conv2";
  out.log2 = 2;
  out.of = 1000;
  out.in_sequence = true;
  return out;
}

std::string said_of(const LayerShift& shift) {
  Study study;
  study.shifts = {shift};
  return said_of(study);
}

AttentionScores scores(double query_norm, double key_norm) {
  AttentionScores out;
  out.query = "activation/a.q";
  out.key = "activation/a.k";
  out.step = 7;
  out.query_norm = query_norm;
  out.key_norm = key_norm;
  out.width = 64;
  return out;
}

TEST_CASE("a shift in a sequence is exact", "[layers]") {
  CHECK(
      said_of(shift()) ==
      "serious: activation/relu1 fits FP16 if weights and bias of conv1 are multiplied by 2^-2, "
      "and the weights of conv2 by 4 (2^2). The network computes the same. A training that goes on "
      "needs other learning rates for both layers (docs/numerics/statistics.md).\n");
}

TEST_CASE("elsewhere a shift has its conditions, and lost weights are counted", "[layers]") {
  LayerShift may = shift();
  may.in_sequence = false;
  may.between = {"act"};
  may.subnormal = 20;
  may.flushed = {3, 4};
  const std::string text = said_of(may);
  CHECK(text.starts_with("note: "));
  CHECK(text.find("computes the same if conv2 alone reads what conv1 computes, and if all between "
                  "commutes with a positive factor, as ReLU, pooling and dropout do. Check act. Of "
                  "1,000 recorded weights of conv1, 20 become subnormal in FP16, and 3 to 4 become "
                  "0.") != std::string::npos);
}

TEST_CASE("infinities hide how large the factor must be", "[layers]") {
  LayerShift hidden = shift();
  hidden.censored = true;
  CHECK(said_of(hidden).find("are multiplied by 2^-2 or less, and the weights of conv2 by the "
                             "inverse.") != std::string::npos);
}

TEST_CASE("a shift that loses many weights is not advised, and others are counted", "[layers]") {
  Study study;
  LayerShift loses = shift();
  loses.flushed = 50;
  study.shifts = {loses};
  CHECK(said_of(study).empty());
  loses.flushed = 49;
  study.shifts = {loses};
  study.advice.no_scale = analyzers::recommend::NoScale::diverges;
  CHECK(said_of(study).empty());
  study.advice.no_scale.reset();
  study.shifts = {loses, shift(), shift()};
  CHECK(said_of(study).find("2 activations more can be helped in this way.") != std::string::npos);
}

TEST_CASE("scores that can overflow, and those that cannot", "[scores]") {
  Study study;
  study.scores = {scores(100, 100)};
  CHECK(said_of(study).empty());
  AttentionScores large = scores(400, 500);
  large.can_overflow = true;
  large.enough_head = 10;
  study.scores = {scores(100, 100), large};
  CHECK(said_of(study) ==
        "note: Attention scores can overflow FP16: a product of activation/a.q and activation/a.k "
        "can be up to 200000 (2^17.6) at step 7, and FP16 holds 65504. Divide q by the root of "
        "the head's size before the product, not after it: that is enough for heads of 10 elements "
        "or more. Else compute the product in FP32 or bfloat16.\n");
  AttentionScores larger = scores(4000, 5000);
  larger.can_overflow = larger.by_head = true;
  larger.enough_head = 93222;
  study.scores = {large, larger};
  const std::string text = said_of(study);
  CHECK(text.find("in heads of at most 256 elements") != std::string::npos);
  CHECK(text.find("So can those of 1 attention more. Compute the product in FP32 or bfloat16.") !=
        std::string::npos);
}

}  // namespace
}  // namespace halfscope::reports::answer::test_findings_layers
