// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/true_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"
#include "sim/training/true_error.hpp"

namespace halfscope::cli::simulate {
namespace {

namespace answer = reports::answer;
using answer::Cell;
using sim::training::GradientError;
using sim::training::StepError;

/// Differences from the true gradients of one role, over all recorded steps.
struct Deviation {
  std::uint64_t lost = 0, underflowed = 0, sign_changed = 0, nonfinite = 0, true_nonzero = 0;
  std::vector<double> errors;  ///< relative errors, one per tensor and step

  void add(const GradientError& error) {
    lost += error.lost;
    underflowed += error.underflowed;
    sign_changed += error.sign_changed;
    nonfinite += error.nonfinite;
    true_nonzero += error.true_nonzero;
    if (std::isfinite(error.relative_error())) errors.push_back(error.relative_error());
  }
};

Deviation deviation_of(const std::vector<StepError>& steps, log::Role role) {
  Deviation out;
  for (const StepError& step : steps) {
    for (const GradientError& error : step.tensors) {
      if (error.role == role) out.add(error);
    }
  }
  std::ranges::sort(out.errors);
  return out;
}

Cell error_cell(const Deviation& of, std::size_t index) {
  if (of.errors.empty()) return {.text = "unknown", .key = -1, .muted = true};
  return {fmt::format("{:.2g}", of.errors[index]), of.errors[index]};
}

Cell share_cell(std::uint64_t count, std::uint64_t of) {
  return {answer::share_text(count, of), static_cast<double>(count)};
}

void add_row(const std::string& what, const Deviation& of, answer::Table& table) {
  if (of.true_nonzero == 0 && of.nonfinite == 0) return;
  const std::size_t last = of.errors.empty() ? 0 : of.errors.size() - 1;
  table.rows.push_back({{{what},
                         error_cell(of, last / 2),
                         error_cell(of, last),
                         share_cell(of.lost, of.true_nonzero),
                         share_cell(of.underflowed, of.lost),
                         share_cell(of.sign_changed, of.true_nonzero),
                         {answer::count_text(of.nonfinite), static_cast<double>(of.nonfinite)}}});
}

}  // namespace

answer::Section true_gradients_section(const sim::training::Settings& settings,
                                       const std::filesystem::path& run) {
  const std::vector<StepError> steps = sim::training::read_true_errors(run);
  answer::Table table{
      .title = fmt::format("Against gradients in binary64, at the same weights and batches, in {}",
                           answer::plural(steps.size(), "recorded step")),
      .note =
          "Relative error: of one tensor at one step. Shares: of gradients that are finite "
          "here and not zero in binary64.",
      .headings = {
          "", "relative error: median", "relative error: largest", "stored as zero",
          fmt::format("of these too small for {}", answer::people_say(settings.precision.tensors)),
          "other sign", "infinite or NaN"}};
  add_row("weight gradients", deviation_of(steps, log::Role::weight_grad), table);
  add_row("activation gradients", deviation_of(steps, log::Role::activation_grad), table);
  answer::Section out;
  if (!table.empty()) out.tables.push_back(std::move(table));
  return out;
}

}  // namespace halfscope::cli::simulate
