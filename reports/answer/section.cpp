// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/section.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::breaks: return "breaks";
    case Severity::serious: return "serious";
    case Severity::warning: return "warning";
    case Severity::note: break;
  }
  return "note";
}

std::string_view name_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::scales: return "scales";
    case Evidence::timeline: return "timeline";
    case Evidence::updates: return "updates";
    case Evidence::overflow: return "overflow";
    case Evidence::policies: return "policies";
    case Evidence::formats: return "formats";
    case Evidence::recipes: return "recipes";
    case Evidence::quantised: return "fp8";
    case Evidence::ranks: return "ranks";
    case Evidence::reductions: return "sums";
    case Evidence::weights: return "weights";
    case Evidence::advice: break;
  }
  return "advice";
}

Cell count_cell(std::uint64_t count) { return {count_text(count), static_cast<double>(count)}; }

Cell share_cell(std::uint64_t count, std::uint64_t of) {
  return {share_text(count, of), of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of),
          fmt::format("{} of {}", count_text(count), count_text(of)), count == 0};
}

std::string text_of(const Finding& finding) {
  return finding.title + (finding.action.empty() ? "" : " ") + finding.action;
}

bool Table::is_number(std::size_t column) const {
  return std::ranges::any_of(rows,
                             [&](const Row& row) { return row.cells.at(column).key.has_value(); });
}

std::string left_out_text(std::size_t rows, std::string_view commands) {
  return fmt::format("{} more {} left out here. {} writes all.", count_text(rows),
                     rows == 1 ? "row is" : "rows are", commands);
}

}  // namespace halfscope::reports::answer
