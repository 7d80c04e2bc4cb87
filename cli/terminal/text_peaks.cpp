// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_peaks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "reports/answer/peaks_words.hpp"

namespace halfscope::cli::terminal {
namespace {

using analyzers::underflow::TensorPeaks;

constexpr std::size_t kShown = 20;
constexpr std::size_t kWidestName = 48;

std::string shortened(const std::string& name) {
  const std::string shown = log::printable(name);
  return shown.size() <= kWidestName ? shown
                                     : "..." + shown.substr(shown.size() - (kWidestName - 3));
}

std::string table_text(const std::vector<TensorPeaks>& order, std::string_view format) {
  const std::size_t shown = std::min(kShown, order.size());
  std::vector<std::array<std::string, 4>> rows = {
      {"tensor", "largest magnitude", "at step", fmt::format("in {}", format)}};
  for (std::size_t i = 0; i < shown; ++i) {
    const TensorPeaks& t = order[i];
    rows.push_back({shortened(t.name), reports::answer::largest_text(t),
                    t.max_abs ? std::to_string(t.max_step) : "",
                    reports::answer::peaks_verdict(t)});
  }
  std::array<std::size_t, 3> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("  {:<{}}  {:>{}}  {:>{}}  {}\n", row[0], widths[0], row[1], widths[1],
                        row[2], widths[2], row[3]);
  }
  if (order.size() > shown) {
    text += fmt::format("  and {} more; --json shows all, step by step\n", order.size() - shown);
  }
  return text;
}

}  // namespace

std::string peaks_text(const analyzers::Findings& found) {
  const std::vector<TensorPeaks> order = reports::answer::peaks_by_harm(found.peaks);
  if (order.empty()) return "";
  return reports::answer::peaks_title(order, found.analysis) + ":\n" +
         table_text(order, found.analysis.target.name);
}

}  // namespace halfscope::cli::terminal
