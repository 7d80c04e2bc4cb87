// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "halfscope/number/convert.hpp"
#include "halfscope/number/text.hpp"
#include "reports/answer/explain.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

namespace {

using tensor_core::TracedStep;
using tensor_core::TracedTerm;

constexpr std::size_t kStepsShown = 16;

double value_of(const tensor_core::detail::Term& term) {
  const double size = std::ldexp(static_cast<double>(term.significand), term.last);
  return term.negative ? -size : size;
}

double kept_value(std::int64_t kept, int grid) {
  return std::ldexp(static_cast<double>(kept), grid);
}

/// Returns the binary digits of a number on the grid, after its sign.
std::string digits_text(std::int64_t kept, int width) {
  return fmt::format("{}{:0{}b}", kept < 0 ? '-' : '+',
                     static_cast<std::uint64_t>(kept < 0 ? -kept : kept), width);
}

Row term_row(const std::string& name, const TracedTerm& term, int grid, int width) {
  const double exact = value_of(term.exact), lost = exact - kept_value(term.kept, grid);
  const bool aligns = term.exact.exponent != tensor_core::kNoFloor;
  return {{{name},
           {fmt::format("{}", exact), exact},
           {aligns ? fmt::format("2^{}", term.exact.exponent) : "none", {}, "", !aligns},
           {code(digits_text(term.kept, width))},
           {lost == 0 ? "0" : fmt::format("{}", lost), lost, "", lost == 0}}};
}

/// Returns the operands of a product: "2048 x -2048"; or the range of a group's products.
std::string term_name(const SumAsked& asked, const TracedStep& step, std::size_t term) {
  const int group = asked.unit.group, first = step.first + static_cast<int>(term) * group;
  const auto at = static_cast<std::size_t>(first);
  if (group > 1) {
    return fmt::format("products {} to {}", first + 1,
                       std::min(first + group, step.first + step.count));
  }
  return fmt::format("{} x {}{}", to_text(asked.a, asked.a_values[at]),
                     to_text(asked.b, asked.b_values[at]), asked.unit.block == 0 ? "" : ", scaled");
}

Table terms_table(const SumAsked& asked, const TracedStep& step) {
  Table table{.title = "Terms",
              .note =
                  "Each term is cut to the grid, toward zero. The digits are binary; the last "
                  "one counts " +
                  power_text(step.grid) + ".",
              .headings = {"term", "exact value", "exponent", "on the grid", "cut off"},
              .whole = true};
  std::uint64_t most = 1;
  const auto size = [](std::int64_t kept) {
    return static_cast<std::uint64_t>(kept < 0 ? -kept : kept);
  };
  for (const TracedTerm& term : step.terms) most = std::max(most, size(term.kept));
  most = std::max({most, size(step.start.kept), size(step.sum)});
  const auto width = static_cast<int>(std::bit_width(most));
  table.rows.push_back(term_row("c", step.start, step.grid, width));
  for (std::size_t i = 0; i < step.terms.size(); ++i) {
    table.rows.push_back(term_row(term_name(asked, step, i), step.terms[i], step.grid, width));
  }
  table.rows.push_back({{{"sum"},
                         {fmt::format("{}", kept_value(step.sum, step.grid)), 0.0},
                         {""},
                         {code(digits_text(step.sum, width))},
                         {""}},
                        true});
  return table;
}

std::string encoded_text(Format f, std::uint32_t bits) {
  return fmt::format("0x{:0{}X} ({})", bits, (f.width + 3) / 4, to_text(f, bits));
}

Section step_section(const SumAsked& asked, const TracedStep& step) {
  const Format out = tensor_core::format_of(asked.accumulator);
  Section section{.title = fmt::format("Step {}: products {} to {}",
                                       step.first / asked.unit.unit.length + 1, step.first + 1,
                                       step.first + step.count)};
  if (step.special) {
    section.sentences.push_back(
        fmt::format("An operand is NaN or infinite, so no term is aligned: d is {}.",
                    encoded_text(out, step.d)));
    return section;
  }
  const double sum = kept_value(step.sum, step.grid), error = to_double(out, step.d) - sum;
  section.sentences = {
      fmt::format("The largest exponent is 2^{}. The grid is {} bits below it: 2^{}.",
                  step.grid + asked.unit.unit.fraction_bits, asked.unit.unit.fraction_bits,
                  step.grid),
      fmt::format("The terms on the grid add up to {}, exactly.", sum),
      fmt::format("Rounded once, d is {}; this rounding changes the sum by {}.",
                  encoded_text(out, step.d), error == 0 ? "nothing" : fmt::format("{}", error))};
  section.tables.push_back(terms_table(asked, step));
  return section;
}

}  // namespace

std::vector<Section> sum_sections(const SumAsked& asked) {
  const Format out = tensor_core::format_of(asked.accumulator);
  const std::size_t shown = std::min(kStepsShown, asked.steps.size());
  Section first{.title = ""};
  first.sentences.push_back(fmt::format(
      "{} adds up to {} products in one step. d of a step is c of the next. The result is {}.",
      asked.architecture, asked.unit.unit.length, encoded_text(out, asked.steps.back().d)));
  if (asked.unit.block != 0 && asked.unit.group > 1) {
    first.sentences.push_back(
        fmt::format("The products of a group of {} are added exactly, before the alignment.",
                    asked.unit.group));
  }
  if (shown < asked.steps.size()) {
    first.sentences.push_back(
        fmt::format("The first {} of {} steps are shown.", shown, count_text(asked.steps.size())));
  }
  std::vector<Section> sections = {first};
  for (std::size_t i = 0; i < shown; ++i) {
    sections.push_back(step_section(asked, asked.steps[i]));
  }
  return sections;
}

}  // namespace halfscope::reports::answer
