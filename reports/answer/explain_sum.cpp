// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "halfscope/number/convert.hpp"
#include "halfscope/tensor_core/exact_sum.hpp"
#include "reports/answer/explain.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

namespace {

using tensor_core::Accumulator;
using tensor_core::ScaledOperand;
using tensor_core::ScaledUnit;
using tensor_core::TracedStep;
using tensor_core::TracedTerm;

std::uint64_t size_of(std::int64_t kept) { return static_cast<std::uint64_t>(std::abs(kept)); }

std::string encoded_text(Format f, std::uint64_t bits) {
  return fmt::format("0x{:0{}X} ({})", bits, f.width / 4, number_text(f, bits));
}

/// Returns a number on the grid in binary digits, after its sign.
Cell digits_cell(std::int64_t kept, int width) {
  return {code(fmt::format("{}{:0{}b}", kept < 0 ? '-' : '+', size_of(kept), width))};
}

/// Returns the term's name, its exact value, the exponent that it aligns with, and both its parts.
Row term_row(const std::string& name, const TracedTerm& term, int grid, int width) {
  const double size = std::ldexp(static_cast<double>(term.exact.significand), term.exact.last);
  const double exact = term.exact.negative ? -size : size;
  const double lost = exact - std::ldexp(static_cast<double>(term.kept), grid);
  const int exponent = term.exact.exponent;
  return {{{name},
           {fmt::format("{}", exact), exact},
           {exponent == tensor_core::kNoFloor ? "none" : fmt::format("2^{}", exponent)},
           digits_cell(term.kept, width),
           {fmt::format("{}", lost), lost}}};
}

/// Returns the table of a step whose products begin at `a` and `b`.
Table terms_table(const ScaledUnit& unit, const ScaledOperand& a, const ScaledOperand& b,
                  const TracedStep& step) {
  Table table{.title = "Terms",
              .note = "Each is cut to the grid, toward zero. The last binary digit counts " +
                      power_text(step.grid) + ".",
              .headings = {"term", "exact value", "exponent", "on the grid", "cut off"},
              .whole = true};
  std::uint64_t most = std::max<std::uint64_t>(size_of(step.sum), 1);
  for (const TracedTerm& term : step.terms) most = std::max(most, size_of(term.kept));
  const auto width = static_cast<int>(std::bit_width(most));
  const auto name = [&](int term) {
    const int first = (term - 1) * unit.group;
    if (term == 0) return std::string("c");
    if (unit.group > 1) {
      return fmt::format("products {} to {}", first + 1, std::min(first + unit.group, step.count));
    }
    return fmt::format("{} x {}{}", number_text(a.format, a.elements[first]),
                       number_text(b.format, b.elements[first]), unit.block == 0 ? "" : ", scaled");
  };
  for (int i = 0; const TracedTerm& term : step.terms) {
    table.rows.push_back(term_row(name(i++), term, step.grid, width));
  }
  const double sum = std::ldexp(static_cast<double>(step.sum), step.grid);
  table.rows.push_back(
      {{{"sum"}, {fmt::format("{}", sum), sum}, {}, digits_cell(step.sum, width), {}}, true});
  return table;
}

/// Returns a sentence on the exact sum of c and products without scales.
std::string exact_sentence(Format out, const ScaledOperand& a, const ScaledOperand& b, int count,
                           std::uint32_t c) {
  const auto value = [](Format f, std::uint32_t bits) {
    return static_cast<float>(to_double(f, bits));  // exact: the formats lie within binary32
  };
  tensor_core::ExactSum sum;
  sum.add(value(out, c));
  for (int i = 0; i < count; ++i) {
    sum.add_product(value(a.format, a.elements[i]), value(b.format, b.elements[i]));
  }
  return fmt::format("The exact sum, rounded once to nearest, is {}.",
                     encoded_text(out, sum.rounded(out).bits));
}

}  // namespace

std::vector<Section> sum_sections(const ScaledUnit& unit, Accumulator d, const ScaledOperand& a,
                                  const ScaledOperand& b, int count, std::uint32_t c) {
  constexpr std::size_t kStepsShown = 16;
  const Format out = tensor_core::format_of(d);
  std::vector<Section> sections(1);
  std::uint32_t sum = c;
  for (int first = 0; first < count; first += unit.unit.length) {
    const int scale = unit.block == 0 ? 0 : first / unit.block;
    const ScaledOperand x = {a.format, a.elements + first, a.scales + scale},
                        y = {b.format, b.elements + first, b.scales + scale};
    const TracedStep step =
        traced_step(unit, d, x, y, std::min(unit.unit.length, count - first), sum);
    sum = step.d;
    if (sections.size() > kStepsShown) continue;
    const int top = step.grid + unit.unit.fraction_bits;
    Section& section = sections.emplace_back();
    section.title = fmt::format("Products {} to {}", first + 1, first + step.count);
    section.sentences = {
        step.terms.empty()
            ? "An operand is NaN or infinite, so nothing is aligned."
            : fmt::format(
                  "The grid is {} bits below 2^{}, the largest exponent or the unit's least.",
                  unit.unit.fraction_bits, top),
        fmt::format("Rounded once, d is {}.", encoded_text(out, step.d))};
    if (!step.terms.empty()) section.tables.push_back(terms_table(unit, x, y, step));
  }
  sections[0].sentences = {
      fmt::format("The result is {}. A step adds up to {} products, and its result d is c of the "
                  "next step. The first {} steps are shown.",
                  encoded_text(out, sum), unit.unit.length, kStepsShown)};
  if (unit.block == 0) sections[0].sentences.push_back(exact_sentence(out, a, b, count, c));
  return sections;
}

}  // namespace halfscope::reports::answer
