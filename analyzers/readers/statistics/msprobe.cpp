// SPDX-License-Identifier: Apache-2.0
// By msprobe/pytorch/monitor/data_writers.py (CSVWriterWithAD) and docs/en/monitor_instruct.md:
//   vpp_stage,name,step[,micro_step],OPS...
// in files "WHAT_A-B.csv" for steps A to B. The word is one of grad_unreduced, grad_reduced, actv,
// actv, actv_grad, param_origin, param_updated, exp_avg or exp_avg_sq. Each rank has a folder.
// Numbers are rounded to `ndigits` decimals, 6 by default. `zeros` is the share of values below
// 1e-8, not of zeros, and is not read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/peak_table.hpp"
#include "analyzers/readers/statistics/statistics.hpp"

namespace halfscope::analyzers::readers::statistics {

using common::Contradiction;
using common::Magnitudes;
using common::PeakTable;
using common::PrintedExtremes;

namespace {

namespace fs = std::filesystem;
using log::Role;

constexpr std::string_view kHeader = "vpp_stage,name,step";

constexpr std::pair<std::string_view, Role> kFiles[] = {
    {"grad_unreduced", Role::weight_grad}, {"grad_reduced", Role::weight_grad},
    {"actv_grad", Role::activation_grad},  {"actv", Role::activation},
    {"param_origin", Role::weight},        {"param_updated", Role::weight_after},
    {"exp_avg_sq", Role::optimizer_state}, {"exp_avg", Role::optimizer_state}};

/// The name of a file without its steps: "grad_reduced" for grad_reduced_0-9.csv.
std::string what_is_in(const fs::path& file) {
  const std::string stem = file.stem().string();
  const std::size_t steps = stem.find_last_of('_');
  const bool has_steps = steps != std::string::npos && steps + 1 < stem.size() &&
                         stem.find_first_not_of("0123456789-", steps + 1) == std::string::npos;
  return has_steps ? stem.substr(0, steps) : stem;
}

Role role_of(std::string_view what) {
  const auto* const found = std::find_if(std::begin(kFiles), std::end(kFiles),
                                         [what](const auto& row) { return row.first == what; });
  return found == std::end(kFiles) ? Role::unknown : found->second;
}

/// A column. Its numbers are rounded to a fixed number of decimals and printed without trailing
/// zeros, so half a unit of the last decimal seen in any cell is at least the rounding error.
struct Column {
  std::optional<std::size_t> index;  ///< empty if the table lacks it
  int last_digit = 0;

  std::optional<std::string_view> in(const std::vector<std::string_view>& cells) const {
    return index && *index < cells.size() ? std::optional(cells[*index]) : std::nullopt;
  }
  void see(const std::vector<std::string_view>& cells) {
    const auto cell = in(cells);
    const auto digit = cell ? common::last_digit_of(*cell) : std::nullopt;
    if (digit) last_digit = std::min(last_digit, *digit);
  }
  /// Empty if the cell is not a number.
  std::optional<common::Bounds> bounds(const std::vector<std::string_view>& cells) const {
    const auto cell = in(cells);
    const auto number = cell ? common::number_in(*cell) : std::nullopt;
    if (!number) return std::nullopt;
    return common::printed_bounds(*number, last_digit);
  }
};

constexpr double kMonitorNormError = 0x1p-20;  // relative

constexpr Contradiction kNanDenied{"nans is 0 beside a min, max or norm that is nan",
                                   "a NaN is assumed"};

class MsprobeFile {
 public:
  explicit MsprobeFile(const log::OpenPath& file)
      : file_(file), what_(what_is_in(file.path)), role_(role_of(what_)) {}

  void read(common::TextFiles& text, PeakTable& peaks, frames::Notes& notes) {
    see_decimals();
    text.read_lines(file_.path, [&](std::string_view line, std::uint64_t number) {
      return std::string(number == 1 ? "" : take(line, number, peaks));  // 1 is the header
    });
    const std::string shown = log::printable(file_.path.string());
    contradictions_.tell(shown, notes);
    if (!(min_.index && max_.index) && !norm_.index) {
      notes.add(shown + ": has neither the ops min and max nor norm; skipped");
    }
  }

 private:
  void see_decimals() {
    common::TextLines lines(file_);
    common::split_cells(lines.next().value_or(""), cells_);
    const auto column = [this](std::string_view name) {
      const auto found = std::find(cells_.begin(), cells_.end(), name);
      Column c;
      if (found != cells_.end()) c.index = static_cast<std::size_t>(found - cells_.begin());
      return c;
    };
    stage_ = column("vpp_stage");
    name_ = column("name");
    step_ = column("step");
    min_ = column("min");
    max_ = column("max");
    norm_ = column("norm");
    nans_ = column("nans");
    while (const auto line = lines.next()) {
      common::split_cells(*line, cells_);
      min_.see(cells_);
      max_.see(cells_);
      norm_.see(cells_);
    }
  }

  /// Returns the error in a line, or an empty text.
  std::string_view take(std::string_view line, std::uint64_t number, PeakTable& peaks) {
    common::split_cells(line, cells_);
    const auto name = name_.in(cells_), step_text = step_.in(cells_), stage = stage_.in(cells_);
    if (!name || name->empty() || !step_text || !stage) return "has too few cells";
    const auto step = common::integer_in(*step_text);
    if (!step) return "its step is not an integer";
    const PrintedExtremes printed = extremes();
    if (printed.norm && printed.norm->high < 0) return "its norm is negative";
    std::vector<const Contradiction*> wrong;
    const std::optional<Magnitudes> found = magnitudes(printed, wrong);
    const std::string tensor = tensor_name(*stage, *name);
    for (const Contradiction* kind : wrong) {
      contradictions_.add(*kind, number,
                          fmt::format("'{}', step {}: {}", log::printable(tensor), *step,
                                      common::text_of(printed)));
    }
    if (found) peaks.add(tensor, role_, *step, *found);
    // An input or output that is not a tensor has nan in every cell.
    return found || !wrong.empty() || is_no_tensor() ? "" : "a cell is not a number";
  }

  std::string tensor_name(std::string_view stage, std::string_view name) const {
    const bool first = stage == "0";
    return fmt::format("{}/{}{}", what_, first ? "" : fmt::format("vpp_stage_{}/", stage), name);
  }

  bool is_no_tensor() const {
    const auto nans = nans_.bounds(cells_);
    if (nans) return std::isnan(nans->low);
    return role_ == Role::activation || role_ == Role::activation_grad;
  }

  PrintedExtremes extremes() const {
    return {min_.bounds(cells_), max_.bounds(cells_), {}, norm_.bounds(cells_), kMonitorNormError};
  }

  std::optional<Magnitudes> magnitudes(const PrintedExtremes& printed,
                                       std::vector<const Contradiction*>& wrong) const {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const auto nans = nans_.bounds(cells_);
    if (nans && nans->low > 0) return Magnitudes{{kNan, kNan}, {}};
    std::optional<Magnitudes> found = common::magnitudes_of(printed, wrong);
    if (!found && printed.norm) {
      // No value is larger than the norm. An infinite norm means an infinite value.
      const double most = printed.norm->high * (1 + kMonitorNormError);
      found = Magnitudes{{std::isfinite(most) ? 0 : most, most}, {}};
    }
    if (!found || !std::isnan(found->largest.high)) return found;
    if (is_no_tensor() && wrong.empty()) return std::nullopt;
    if (nans && wrong.empty()) wrong.push_back(&kNanDenied);
    return found;
  }

  log::OpenPath file_;
  std::string what_;
  Role role_;
  Column stage_, name_, step_, min_, max_, norm_, nans_;
  std::vector<std::string_view> cells_;
  common::Contradictions contradictions_;
};

bool is_monitor_table(const log::OpenPath& file) {
  return common::beginning_of(file, kHeader.size()) == kHeader;
}

constexpr int kMonitorLevels = 2;  // MONITOR_OUTPUT_DIR/TIME-rankR-X/WHAT_A-B.csv

}  // namespace

bool is_msprobe(const log::OpenPath& log) {
  return common::any_file_below(log, kMonitorLevels, is_monitor_table);
}

void read_msprobe(const log::OpenPath& log, const common::TimelineSelection& selection,
                  const frames::Visitor& visit, frames::Notes& notes,
                  const frames::Progress& progress) {
  const auto read = [&](const fs::path& file, common::TextFiles& text, PeakTable& peaks) {
    MsprobeFile(log.at(file)).read(text, peaks, notes);
  };
  common::read_peaks("msprobe monitor tables", log,
                     common::files_below(log, kMonitorLevels, is_monitor_table), read, selection,
                     visit, notes, progress);
}

}  // namespace halfscope::analyzers::readers::statistics
