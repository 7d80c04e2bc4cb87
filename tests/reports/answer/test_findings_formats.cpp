// SPDX-License-Identifier: Apache-2.0
// What is said of formats that a run could use.
#include <string>

#include "catch.hpp"
#include "reports/answer/findings.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer::test_findings_formats {
namespace {

using analyzers::Study;
using analyzers::formats::AmaxHistory;
using analyzers::formats::HistoryChoice;
using analyzers::formats::MxGradients;

HistoryChoice choice(std::int64_t length, Interval flushed, std::uint64_t clipped_steps) {
  HistoryChoice out;
  out.length = length;
  out.flushed = flushed;
  out.clipped_steps = clipped_steps;
  return out;
}

/// 100 casts of tensors with 1000 values: a length of 1 and the default.
AmaxHistory history(Interval flushed_at_1, Interval flushed, std::uint64_t clipped_by_far) {
  AmaxHistory out;
  out.log = "run";
  out.tensors = 4;
  out.steps = 100;
  out.values = 1000;
  out.choices = {choice(1, flushed_at_1, 40), choice(1024, flushed, 30)};
  out.with_margin = choice(1024, flushed, clipped_by_far);
  out.with_margin.by_chance = 6;
  out.with_margin.most_clipped = "activation/a";
  return out;
}

std::string said_of(const Study& study) {
  std::string text;
  for (const Finding& finding : findings(study)) {
    text += std::string(name_of(finding.severity)) + ": " + plain(text_of(finding)) + "\n";
  }
  return text;
}

std::string said_of(const AmaxHistory& history) {
  Study study;
  study.amax_histories = {history};
  return said_of(study);
}

TEST_CASE("delayed scaling: a healthy log has no finding and a sentence", "[delayed_scaling]") {
  const AmaxHistory healthy = history({20, 30}, {40, 50}, 4);  // 1 % at the least is lost more
  CHECK(said_of(healthy).empty());
  REQUIRE(delayed_sentences(healthy).size() == 1);
  CHECK(plain(delayed_sentences(healthy)[0]) ==
        "FP8 with delayed scaling can keep the default amax_history_len=1024: it clips the largest "
        "magnitude in 30 of 100 casts (4 with margin=1), and 4.00 % to 5.00 % of the values become "
        "zero. "
        "No other length loses much less.");
  CHECK(said_of(history(20, 20, 12)).empty());  // as by chance
}

TEST_CASE("delayed scaling: a shorter history that loses less", "[delayed_scaling]") {
  CHECK(said_of(history({20, 30}, {50, 60}, 4)) ==
        "note: FP8 with delayed scaling loses least at amax_history_len=1: 2.00 % to 3.00 % of the "
        "values are clipped or become zero there, and 5.00 % to 6.00 % at the default "
        "amax_history_len=1024, which holds on to large magnitudes of steps long past. Set "
        "amax_history_len=1. It clips the largest magnitude in 40 of 100 casts, the "
        "default in 30.\n");
}

TEST_CASE("delayed scaling: magnitudes that outgrow every history", "[delayed_scaling]") {
  CHECK(said_of(history(20, 20, 13)) ==
        "note: FP8 with delayed scaling would clip the largest magnitude in 30 of 100 casts at the "
        "default amax_history_len=1024, in 13 of them by more than a factor of 2, most often that "
        "of activation/a: magnitudes grow faster than the scales follow. No shorter history clips "
        "less. Float8CurrentScaling clips none: it takes each scale from the tensor itself.\n");
  const Table table = delayed_table(history(20, 20, 13));
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[1].marked);
  CHECK(table.rows[2].cells[0].text == "1024, margin=1");
  CHECK(table.rows[2].cells[3].text == "13");
}

TEST_CASE("MX gradients: E4M3 is the recipe's, E5M2 alone is to be set", "[mx_gradients]") {
  Study study;
  study.mx_gradients = MxGradients{12, 12, 0, 31.52, 25.38, "", 0};
  CHECK(said_of(study).empty());
  CHECK(mx_gradients_text(*study.mx_gradients) ==
        "In MXFP8 blocks E4M3 keeps more than E5M2 in 12 of 12 gradients, E5M2 in none: the "
        "medians are 31.5 dB in E4M3 and 25.4 dB in E5M2.");
  study.mx_gradients = MxGradients{12, 3, 9, 20, 24, "activation_grad/a", 6.5};
  CHECK(said_of(study) ==
        "note: In MXFP8 blocks E4M3 keeps more than E5M2 in 3 of 12 gradients, E5M2 in 9: the "
        "medians are 20.0 dB in E4M3 and 24.0 dB in E5M2. E5M2 gains most in activation_grad/a, "
        "6.5 dB. Set MXFP8BlockScaling(fp8_format=Format.HYBRID), which has E5M2 for gradients.\n");
}

}  // namespace
}  // namespace halfscope::reports::answer::test_findings_formats
