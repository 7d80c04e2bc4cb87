// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include <string>
#include <vector>

#include "reports/answer/text.hpp"
#include "reports/answer/weights.hpp"

namespace halfscope::reports::answer {
namespace {

using analyzers::weights::Forecast;
using analyzers::weights::ForecastCounts;
using analyzers::weights::TensorForecast;

/// Returns a ratio with three decimals that is 1.000 only if it is 1.
std::string ratio_text(std::uint64_t part, std::uint64_t all) {
  if (all == 0) return "";
  const double ratio = static_cast<double>(part) / static_cast<double>(all);
  return fmt::format("{:.3f}", part == all ? 1.0 : std::min(ratio, 0.999));
}

/// Undecided weights that moved are not missed.
std::string recall_text(const ForecastCounts& counts) {
  return ratio_text(counts.moved - counts.missed, counts.moved);
}

std::string precision_text(const ForecastCounts& counts) {
  return ratio_text(counts.found, counts.judged.moves);
}

std::vector<std::string> forecast_sentences(const Forecast& found) {
  const ForecastCounts& all = found.all;
  std::vector<std::string> out = {
      fmt::format("{} of {} copies change in {} ({}), by the optimizer's own arithmetic.",
                  count_text(all.moves), count_text(all.elements),
                  plural(found.steps.size(), "sampled step"), share_text(all.moves, all.elements))};
  if (all.undecided != 0) {
    out.push_back(fmt::format(
        "{} more are undecided: the optimizer's implementation does not fix their last bits.",
        count_text(all.undecided)));
  }
  if (all.judged.elements != 0) {
    out.push_back(fmt::format(
        "For {} of them the log has the next weights: {} changed. Recall {}, precision {}.",
        count_text(all.judged.elements), count_text(all.moved), recall_text(all),
        precision_text(all)));
  }
  out.push_back(fmt::format("By the size of the updates alone one would expect {} changes.",
                            count_text(static_cast<std::uint64_t>(std::llround(all.expected)))));
  return out;
}

}  // namespace

std::vector<Section> weights_sections(const Forecast& found) {
  Section out{"Which copies a step changes", forecast_sentences(found)};
  Table table{Evidence::updates, "By tensor"};
  table.headings = {"tensor",    "optimizer", "weights", "move",
                    "undecided", "expected",  "recall",  "precision"};
  table.all_by = "weights LOG --forecast --json FILE";
  table.add_rows(found.tensors, [](const TensorForecast& tensor) {
    return Row{{{code(tensor.name)},
                {tensor.row},
                count_cell(tensor.elements),
                count_cell(tensor.moves),
                count_cell(tensor.undecided),
                {fmt::format("{:.4g}", tensor.expected), tensor.expected},
                {recall_text(tensor)},
                {precision_text(tensor)}}};
  });
  out.add(std::move(table));
  return {out};
}

}  // namespace halfscope::reports::answer
