// SPDX-License-Identifier: Apache-2.0
// What tensors lost that a run stores as codes with scales.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/answer/comparison.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::compare::BlockLoss;
using analyzers::compare::ComparedTensor;
using analyzers::compare::Comparison;
using analyzers::compare::Conversion;

namespace {

/// Returns the sentence about one run; empty if it stores no tensor as codes.
std::string run_text(const std::vector<const ComparedTensor*>& tensors,
                     std::optional<BlockLoss> Conversion::*side, std::string_view run) {
  BlockLoss sum;
  std::uint64_t stored = 0;
  for (const ComparedTensor* tensor : tensors) {
    const std::optional<BlockLoss>& loss = (*tensor->conversion).*side;
    if (!loss) continue;
    ++stored;
    sum.blocks += loss->blocks;
    sum.vanished += loss->vanished;
    sum.clipped += loss->clipped;
  }
  if (stored == 0) return "";
  return fmt::format(
      "{} stores {} as codes with scales. Of {}, {} vanished (all values became "
      "zero) and {} have clipped values.",
      run, plural(stored, "tensor"), plural(sum.blocks, "block"), count_text(sum.vanished),
      count_text(sum.clipped));
}

Cell noise_cell(double decibels) {
  if (std::isfinite(decibels)) return {fmt::format("{:.1f} dB", decibels), decibels};
  return {.text = std::isnan(decibels) ? "all zero" : "exact", .muted = true};
}

Row row_of(const ComparedTensor& tensor, const BlockLoss& loss, std::string_view run) {
  const auto count = [&](std::uint64_t n) {
    return Cell{share_text(n, loss.blocks), static_cast<double>(n), count_text(n), n == 0};
  };
  return {{{code(tensor.name)},
           {fmt::format("{} {}, {}x{}, {}", run, loss.layout.element, loss.layout.block_rows,
                        loss.layout.block_columns, loss.layout.scale)},
           noise_cell(tensor.conversion->signal_to_noise()),
           {count_text(loss.blocks), static_cast<double>(loss.blocks)},
           count(loss.vanished),
           count(loss.clipped)}};
}

}  // namespace

Section conversion_section(const Comparison& comparison) {
  std::vector<const ComparedTensor*> tensors;
  for (const ComparedTensor& tensor : comparison.tensors) {
    if (tensor.conversion) tensors.push_back(&tensor);
  }
  if (tensors.empty()) return {};
  std::ranges::stable_sort(tensors, {}, [](const ComparedTensor* tensor) {
    const double decibels = tensor->conversion->signal_to_noise();
    return std::isnan(decibels) ? HUGE_VAL : decibels;
  });
  Table table{.title = "Tensors stored as codes, the lowest signal-to-noise ratio first",
              .headings = {"tensor", "codes, block, scales", "signal to noise", "blocks",
                           "vanished", "clipped"}};
  table.all_by = "compare A B --json FILE";
  std::vector<Row> rows;
  for (const ComparedTensor* tensor : tensors) {
    const Conversion& conversion = *tensor->conversion;
    if (conversion.a) rows.push_back(row_of(*tensor, *conversion.a, "A:"));
    if (conversion.b) rows.push_back(row_of(*tensor, *conversion.b, "B:"));
  }
  table.add_rows(rows, [](const Row& row) { return row; });
  Section out{"What storage as codes lost",
              {run_text(tensors, &Conversion::a, "A"), run_text(tensors, &Conversion::b, "B")},
              {table}};
  std::erase(out.sentences, "");
  return out;
}

}  // namespace halfscope::reports::answer
