// SPDX-License-Identifier: Apache-2.0
#include "reports/compare_words.hpp"

#include <fmt/format.h>

#include <cmath>

#include "reports/text.hpp"

namespace halfscope::reports {

using analyzers::Change;
using analyzers::Comparison;
using analyzers::RunTotals;

namespace {

std::string zeros_of(const RunTotals& run) {
  return share_of_total(lost_to_zero(run.gradients), run.gradients.total);
}

std::string underflow_sentence(const Comparison& c) {
  const std::string numbers =
      fmt::format("{} in A, {} in B", zeros_of(c.runs.a), zeros_of(c.runs.b));
  switch (c.underflow) {
    case Change::less: return "B loses fewer gradient values to zero: " + numbers + ".";
    case Change::more: return "B loses more gradient values to zero: " + numbers + ".";
    case Change::same: return "Both lose as many gradient values to zero: " + numbers + ".";
    case Change::unknown: break;
  }
  if (c.gradients == 0) return "The runs have no gradients in common.";
  return "Whether B loses more gradient values to zero cannot be told: " + numbers + ".";
}

std::string overflow_sentence(const Comparison& c) {
  const Interval a = not_finite(c.runs.a.gradients), b = not_finite(c.runs.b.gradients);
  if (c.gradients == 0) return "";
  if (a.high == 0 && b.high == 0) return " No gradient is infinite, NaN or overflows in either.";
  return fmt::format(" Infinite, NaN or overflowing: {} in A, {} in B.", count_text(a),
                     count_text(b));
}

std::string loss_sentence(const Comparison& c) {
  if (!c.last_loss) return "";
  return fmt::format(" Loss at step {}: {:.6g} in A, {:.6g} in B.", c.last_loss->step,
                     c.last_loss->a, c.last_loss->b);
}

}  // namespace

std::string comparison_answer(const Comparison& c) {
  return underflow_sentence(c) + overflow_sentence(c) + loss_sentence(c);
}

std::string share_of_total(const Interval& count, std::uint64_t total) {
  return share_text(count, total);
}

std::string scales_text(const RunTotals& run) {
  if (!run.loss_scales) return "not known";
  const auto& [least, largest] = *run.loss_scales;
  return least == largest ? scale_text(least)
                          : fmt::format("{} to {}", scale_text(least), scale_text(largest));
}

std::string skipped_text(const RunTotals& run) {
  if (run.steps == 0) return "not recorded";
  return fmt::format("{} of {}", count_text(run.skipped.size()), plural(run.steps, "step"));
}

std::string shift_text(double log2) {
  return std::abs(log2) < 0.005 ? (log2 == 0  ? "0"
                                   : log2 > 0 ? "+0.00"
                                              : "-0.00")
                                : fmt::format("{:+.2f}", log2);
}

std::string more_not_finite(const analyzers::ComparedTensor& t) {
  const Interval a = not_finite(t.counts.a), b = not_finite(t.counts.b);
  if (!a.exact() || !b.exact()) return count_text(b);
  return signed_text(static_cast<std::int64_t>(b.low) - static_cast<std::int64_t>(a.low));
}

std::string signed_text(std::int64_t count) {
  if (count == 0) return "0";
  const std::uint64_t magnitude =
      count < 0 ? ~static_cast<std::uint64_t>(count) + 1 : static_cast<std::uint64_t>(count);
  return (count < 0 ? "-" : "+") + count_text(magnitude);
}

}  // namespace halfscope::reports
