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

using tensor_core::ScaledOperand;
using tensor_core::ScaledUnit;

/// One step of a chain.
struct Step {
  ScaledOperand a, b;  ///< from its first product on
  int count;           ///< products
  /// C, then the products or sums of groups of products: exact, and in units of 2^grid after the
  /// cut. Empty if an operand is NaN or infinite.
  std::vector<std::pair<tensor_core::detail::Term, std::int64_t>> terms = {};
  int grid = 0;

  std::uint32_t take(const ScaledUnit& unit, tensor_core::Accumulator d, std::uint32_t c) {
    return scaled_step(unit, a, b, count, c, d, [&](const auto& term, auto kept, int its_grid) {
      terms.emplace_back(term, kept);
      grid = its_grid;
    });
  }
  /// Returns the name of a term, as its operands.
  std::string name(const ScaledUnit& unit, int term) const {
    const int first = (term - 1) * unit.group, end = std::min(first + unit.group, count);
    if (term == 0) return "c";
    if (unit.group > 1) return fmt::format("products {} to {}", first + 1, end);
    return fmt::format("{} x {}{}", to_double(a.format, a.elements[first]),
                       to_double(b.format, b.elements[first]), unit.block == 0 ? "" : ", scaled");
  }
};

std::string encoded_text(Format f, std::uint64_t bits) {
  return fmt::format("0x{:0{}X} ({})", bits, f.width / 4, to_double(f, bits));
}

Cell number_cell(double x) { return {fmt::format("{}", x), x}; }

/// Returns a number on the grid in binary digits, after its sign.
Cell digits_cell(std::int64_t kept, int width) {
  return {code(fmt::format("{}{:0{}b}", kept < 0 ? '-' : '+', std::abs(kept), width))};
}

Table terms_table(const ScaledUnit& unit, const Step& step) {
  Table table{.title = "Terms",
              .note = "Each is cut to the grid, toward zero. The last binary digit counts " +
                      power_text(step.grid) + ".",
              .headings = {"term", "exact value", "exponent", "on the grid", "cut off"},
              .whole = true};
  std::int64_t sum = 0, most = 1;
  for (const auto& [term, kept] : step.terms) most = std::max(most, std::abs(kept)), sum += kept;
  const auto width =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max(most, std::abs(sum)))));
  const auto value = [&](std::int64_t kept) { return std::ldexp(kept, step.grid); };
  for (int i = 0; const auto& [term, kept] : step.terms) {
    const double exact = std::ldexp(term.negative ? -1.0 : 1.0, term.last) * term.significand;
    table.rows.push_back(
        {{{step.name(unit, i++)},
          number_cell(exact),
          {term.exponent == tensor_core::kNoFloor ? "none" : fmt::format("2^{}", term.exponent)},
          digits_cell(kept, width),
          number_cell(exact - value(kept))}});
  }
  table.rows.push_back({{{"sum"}, number_cell(value(sum)), {}, digits_cell(sum, width), {}}, true});
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

std::vector<Section> sum_sections(const ScaledUnit& unit, tensor_core::Accumulator d,
                                  const ScaledOperand& a, const ScaledOperand& b, int count,
                                  std::uint32_t c) {
  constexpr int kStepsShown = 16;
  const int length = unit.unit.length, bits = unit.unit.fraction_bits;
  const Format out = tensor_core::format_of(d);
  std::vector<Section> sections(1);
  std::uint32_t sum = c;
  for (int first = 0; first < count; first += length) {
    const int scale = unit.block == 0 ? 0 : first / unit.block;
    Step step{{a.format, a.elements + first, a.scales + scale},
              {b.format, b.elements + first, b.scales + scale},
              std::min(length, count - first)};
    sum = step.take(unit, d, sum);
    if (first >= kStepsShown * length) continue;
    Section& section = sections.emplace_back();
    section.title = fmt::format("Products {} to {}", first + 1, first + step.count);
    section.sentences = {
        step.terms.empty()
            ? "An operand is NaN or infinite, so nothing is aligned."
            : fmt::format(
                  "The grid is {} bits below 2^{}, the largest exponent or the unit's least.", bits,
                  step.grid + bits),
        fmt::format("Rounded once, d is {}.", encoded_text(out, sum))};
    if (!step.terms.empty()) section.tables.push_back(terms_table(unit, step));
  }
  sections[0].sentences = {fmt::format(
      "The result is {}. A step adds up to {} products, and its result d is c of the next step.{}",
      encoded_text(out, sum), length,
      count > kStepsShown * length ? fmt::format(" The first {} steps are shown.", kStepsShown)
                                   : "")};
  if (unit.block == 0) sections[0].sentences.push_back(exact_sentence(out, a, b, count, c));
  return sections;
}

}  // namespace halfscope::reports::answer
