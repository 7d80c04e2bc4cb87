// SPDX-License-Identifier: Apache-2.0
// Section of a comparison: what a run lost by storing tensors as codes with scales.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/answer/comparison.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::compare::BlockLoss;
using analyzers::compare::Comparison;

namespace {

/// A tensor that a run stores as codes.
struct Stored {
  std::string_view run, name;
  BlockLoss loss;
  double decibels, vanished;  ///< infinite without noise; share of the blocks

  Stored(std::string_view in, const std::string& tensor, const BlockLoss& of)
      : run(in),
        name(tensor),
        loss(of),
        decibels(of.noise == 0 ? std::numeric_limits<double>::infinity() : of.signal_to_noise()),
        vanished(of.blocks == 0
                     ? 0
                     : static_cast<double>(of.vanished) / static_cast<double>(of.blocks)) {}
};

void sort_worst_first(std::vector<Stored>& tensors) {
  std::ranges::stable_sort(
      tensors, {}, [](const Stored& one) { return std::pair(-one.vanished, one.decibels); });
}

/// Returns the tensors that a run stores as codes, worst first.
std::vector<Stored> stored_by(const Comparison& comparison, bool in_b) {
  std::vector<Stored> out;
  for (const auto& tensor : comparison.tensors) {
    const auto& loss = in_b ? tensor.stored.b : tensor.stored.a;
    if (loss) out.emplace_back(in_b ? "B" : "A", tensor.name, *loss);
  }
  sort_worst_first(out);
  return out;
}

void add_stored(const std::vector<Stored>& tensors, std::vector<std::string>& sentences) {
  constexpr std::size_t kMostNamed = 5;
  constexpr double kNoSignal = 1;  // dB; a factor far too small leaves a little more than 0
  BlockLoss sum;
  std::vector<std::string> no_signal;
  for (const Stored& one : tensors) {
    sum += one.loss;
    if (std::isfinite(one.decibels) && one.decibels < kNoSignal) no_signal.emplace_back(one.name);
  }
  const Stored& worst = tensors.front();
  sentences.push_back(fmt::format(
      "{} stores {} as codes with scales. Of {}, {} vanished (all values became zero) and {} have "
      "clipped values.",
      worst.run, plural(tensors.size(), "tensor"), plural(sum.blocks, "block"),
      count_text(sum.vanished), count_text(sum.clipped)));
  if (worst.loss.vanished != 0 && tensors.size() > 1) {
    sentences.push_back(fmt::format("The largest share vanished in {}: {} of {}.", code(worst.name),
                                    share_text(worst.loss.vanished, worst.loss.blocks),
                                    plural(worst.loss.blocks, "block")));
  }
  if (no_signal.empty()) return;
  sentences.push_back(
      fmt::format("The errors of {} are about as large as the values or larger (signal to noise "
                  "below {} dB): the "
                  "scales or the second scale in {} may be inverted or missing.",
                  listed_code(no_signal, kMostNamed), kNoSignal, worst.run));
}

Row stored_row(const Stored& one) {
  const auto count = [&](std::uint64_t n) {
    return Cell{share_text(n, one.loss.blocks), static_cast<double>(n), count_text(n), n == 0};
  };
  const log::TensorBlocks& layout = one.loss.layout;
  const bool finite = std::isfinite(one.decibels);
  return {{{code(one.name)},
           {fmt::format("{}: {}, {}x{}, {}", one.run, layout.element, layout.block_rows,
                        layout.block_columns, layout.scale)},
           {.text = !finite && one.decibels < 0 ? "lost" : decibels_text(one.decibels),
            .key = finite ? std::optional(one.decibels) : std::nullopt,
            .muted = !finite},
           {count_text(one.loss.blocks), static_cast<double>(one.loss.blocks)},
           count(one.loss.vanished),
           count(one.loss.clipped)}};
}

}  // namespace

Section stored_section(const Comparison& comparison) {
  Section out{"Loss by storage as codes"};
  std::vector<Stored> tensors;
  for (const bool in_b : {false, true}) {
    const std::vector<Stored> of_run = stored_by(comparison, in_b);
    if (of_run.empty()) continue;
    add_stored(of_run, out.sentences);
    tensors.insert(tensors.end(), of_run.begin(), of_run.end());
  }
  if (tensors.empty()) return {};
  sort_worst_first(tensors);
  Table table{.title = "Tensors stored as codes, most vanished blocks first",
              .headings = {"tensor", "codes, block, scales", "signal to noise", "blocks",
                           "vanished", "clipped"}};
  table.all_by = "compare A B --json FILE";
  table.add_rows(tensors, stored_row);
  out.tables.push_back(std::move(table));
  return out;
}

}  // namespace halfscope::reports::answer
