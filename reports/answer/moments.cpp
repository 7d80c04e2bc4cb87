// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/weights.hpp"

namespace halfscope::reports::answer {

namespace weights = analyzers::weights;
using weights::MomentFit;
using weights::MomentReplay;
using weights::MomentShift;
using weights::StoredMoments;

namespace {

std::string format_text(const StoredMoments& stored) {
  return stored.storage.scaled ? "E4M3 in blocks" : std::string(people_say(stored.storage.name));
}

/// Returns a number without its exponent: "+1.2e+02" as "+120".
std::string plain_number(const std::string& number) {
  if (number.find("e+") == number.npos) return number;
  return fmt::format("{}{:.0f}", number.front() == '+' ? "+" : "", std::stod(number));
}

/// For example "+45 % (±0.3)", or "850 times (±20)" for means above 10.
std::string shift_text(const MomentShift& shift) {
  const bool large = shift.mean > 10;
  const std::string mean = large ? fmt::format("{:.0f} times", 1 + shift.mean)
                                 : plain_number(fmt::format("{:+.2g}", 100 * shift.mean)) + " %";
  if (std::isinf(shift.error)) return mean;
  const double error = (large ? 1 : 100) * shift.error;
  return fmt::format("{} (±{})", mean, plain_number(fmt::format("{:.1g}", error)));
}

std::string replayed_text(const MomentReplay& found) {
  const std::string start =
      found.from_state ? fmt::format("the moments of step {}", found.first_step) : std::string("0");
  const std::string gradients =
      found.gradients == 1
          ? fmt::format("the gradients of step {}", found.first_step)
          : fmt::format("the gradients of {} sampled steps, {} to {}, taken as consecutive",
                        count_text(found.gradients), found.first_step, found.last_step);
  return fmt::format(
      "Adam (betas {:g} and {:g}) is replayed for {} from {}, in FP32, on {} of {} elements of {}. "
      "It repeats {}: a real run has other large gradients between them, and may differ more.",
      found.adam.beta1, found.adam.beta2, plural(found.steps, "step"), start,
      count_text(found.elements), count_text(found.all_elements),
      plural(found.tensors, "weight gradient"), gradients);
}

/// For example "BF16, rounded to nearest".
std::string way_text(const StoredMoments& stored) {
  return fmt::format("{}, rounded {}", format_text(stored),
                     stored.storage.stochastic ? "stochastically" : "to nearest");
}

/// Returns if a moment may be stored so.
std::string fit_text(const char* moment, const StoredMoments& stored, weights::MomentMeasure step) {
  constexpr std::array kMay = {"may be", "may perhaps be", "should not be"};  // by MomentFit
  const MomentShift& shift = stored.shifts[step];
  return fmt::format("{} {} stored in {}: the steps of the weights change by {}; the limit is {}.",
                     code(moment), kMay[static_cast<std::size_t>(fit_of(shift))], way_text(stored),
                     shift_text(shift), share_text(weights::kMomentLimit));
}

std::string second_text(const StoredMoments& stored) {
  const std::string off = fmt::format("In {}, {} ends {} off", way_text(stored), code("exp_avg_sq"),
                                      shift_text(stored.shifts[weights::of_second]));
  if (stored.stalled == 0) return off + ".";
  return fmt::format(
      "{}, and {} of its positive elements never decay: beta2 v is rounded to v again. The "
      "difference grows with the number of steps ({}).",
      off, share_text(stored.stalled, stored.positive), code("--moment-steps"));
}

Row row_of(const StoredMoments& stored, std::uint64_t elements) {
  Row row{{{format_text(stored)}, {stored.storage.stochastic ? "stochastic" : "to nearest"}}};
  for (const MomentShift& shift : stored.shifts) {
    row.cells.push_back({shift_text(shift), shift.mean});
  }
  row.cells.push_back(share_cell(stored.stalled, stored.positive));
  row.cells.push_back(share_cell(stored.vanished, elements));
  return row;
}

Table moments_table(const MomentReplay& found) {
  Table table{Evidence::updates, "Moments against those in FP32"};
  table.note =
      "After the last step, with standard errors over blocks of 256 elements. v: mean of v / v32 - "
      "1. Steps s of weights: mean of s / s32 - 1, weighted by |s32|, with exp_avg, exp_avg_sq or "
      "both in the format. Stalled: v > 0, but beta2 v is rounded to v again, so that v never "
      "decays. Vanished: v is 0, and m is not. FP16 has no scale, "
      "256 elements of E4M3 share one.";
  table.headings = {"format",        "rounding", "v",       "s, exp_avg",
                    "s, exp_avg_sq", "s, both",  "stalled", "vanished"};
  table.all_by = "weights LOG --moments --json FILE";
  table.whole = true;
  table.add_rows(found.stored, [&](const auto& one) { return row_of(one, found.elements); });
  return table;
}

/// Options that store those moments in BF16 and E4M3 that may be, rounded to nearest.
PasteLines moments_lines(const StoredMoments& bf16, const StoredMoments& e4m3) {
  const auto fits = [](const StoredMoments& stored, weights::MomentMeasure step) {
    return fit_of(stored.shifts[step]) == MomentFit::fits;
  };
  const bool first = fits(bf16, weights::step_first), second = fits(bf16, weights::step_second);
  std::string lines = fmt::format(
      "FusedAdam(params, exp_avg_dtype=torch.{}, exp_avg_sq_dtype=torch.{})  # Transformer Engine\n"
      "--use-precision-aware-optimizer --exp-avg-dtype {} --exp-avg-sq-dtype {}  # Megatron-LM",
      first ? "bfloat16" : "float32", second ? "bfloat16" : "float32", first ? "bf16" : "fp32",
      second ? "bf16" : "fp32");
  if (first && second) lines += "\n--optimizer.implementation fused_opt_states_bf16  # torchtitan";
  if (fits(e4m3, weights::step_first) && fits(e4m3, weights::step_second)) {
    lines += "\ntorchao.optim.AdamWFp8(params)";
  }
  return {"Store the moments", lines,
          "AdamW8bit of torchao and of bitsandbytes has other codes, which are not replayed."};
}

}  // namespace

std::vector<Section> weights_sections(const MomentReplay& found) {
  const StoredMoments &bf16 = found.stored[0], &e4m3 = found.stored[4];  // kMomentStorages
  Section section{"Adam's moments in 16 and 8 bits", {replayed_text(found), second_text(bf16)}};
  for (const StoredMoments& stored : {bf16, found.stored[1]}) {
    section.sentences.push_back(fit_text("exp_avg", stored, weights::step_first));
    section.sentences.push_back(fit_text("exp_avg_sq", stored, weights::step_second));
  }
  if (found.nonfinite > 0) {
    section.sentences.push_back(
        fmt::format("{} of the elements are left out: their moments are NaN or infinite in FP32.",
                    count_text(found.nonfinite)));
  }
  section.pastes = {moments_lines(bf16, e4m3)};
  section.add(moments_table(found));
  return {section};
}

}  // namespace halfscope::reports::answer
