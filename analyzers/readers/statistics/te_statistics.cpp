// SPDX-License-Identifier: Apache-2.0
// The line, by nvdlfw_inspect/logging.py (FileLogger.log_scalar, {:06d} and {:.4f}):
//   2026-01-01 00:00:00,000 - INFO - LAYER_TENSOR_STATISTIC \t\t iteration=000002 \t\t value=0.0000
// Tensors and statistics by transformer_engine/debug/features/log_tensor_stats.py; how they are
// computed by utils/stats_computation.py there.
#include "analyzers/readers/statistics/te_statistics.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/peak_table.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::statistics {

using common::Contradiction;
using common::PeakTable;
using frames::Notes;

namespace {

namespace fs = std::filesystem;
using log::Role;

constexpr int kLastDigit = -4;  // {:.4f}
constexpr std::size_t kLookedAt = std::size_t{1} << 16;
constexpr std::size_t kLongestLine = std::size_t{1} << 14;

enum class Statistic : std::uint8_t { min, max, amax, norm, dynamic_range };
constexpr std::array<std::pair<std::string_view, Statistic>, 5> kStatistics = {
    {{"_min", Statistic::min},
     {"_max", Statistic::max},
     {"_cur_amax", Statistic::amax},
     {"_l2_norm", Statistic::norm},
     {"_dynamic_range", Statistic::dynamic_range}}};

/// gradient is that of a layer's output, dgrad that of its input: both of activations.
constexpr std::pair<std::string_view, Role> kTensors[] = {
    {"_gradient", Role::activation_grad}, {"_dgrad", Role::activation_grad},
    {"_wgrad", Role::weight_grad},        {"_weight", Role::weight},
    {"_activation", Role::activation},    {"_output", Role::activation}};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// A line's parts as they are written.
struct Entry {
  std::string_view name, step, value;
};
std::optional<Entry> entry_in(std::string_view line) {
  constexpr std::string_view step_is = "iteration=", value_is = "value=";
  const std::size_t step = line.find(step_is);
  if (step == std::string_view::npos) return std::nullopt;
  const std::size_t value = line.find(value_is, step);
  if (value == std::string_view::npos) return std::nullopt;
  Entry entry;
  entry.name = trimmed(line.substr(0, step));
  entry.name.remove_prefix(entry.name.find_last_of(" \t") + 1);
  const std::size_t digits = step + step_is.size();
  entry.step = trimmed(line.substr(digits, value - digits));
  entry.value = trimmed(line.substr(value + value_is.size()));
  if (entry.name.empty()) return std::nullopt;
  return entry;
}

/// The tensor's name and which of its statistics a logged name is of. Of others, FP8's among them,
/// nothing follows for FP16.
std::optional<std::pair<std::string_view, Statistic>> split(std::string_view name) {
  for (const auto& [suffix, statistic] : kStatistics) {
    if (!name.ends_with(suffix) || name.size() == suffix.size()) continue;
    name.remove_suffix(suffix.size());
    const bool of_scales = name.find("_scale_inv") != std::string_view::npos;
    return of_scales ? std::nullopt : std::optional(std::pair(name, statistic));
  }
  return std::nullopt;
}

Role role_of(std::string_view tensor) {
  for (const auto& [suffix, role] : kTensors) {
    if (tensor.ends_with(suffix)) return role;
  }
  return Role::unknown;
}

/// What one file says of one tensor at one step, by statistic.
struct Statistics {
  std::array<std::optional<common::Bounds>, kStatistics.size()> of;
  std::uint64_t line = 0;  ///< of the last one
  const std::optional<common::Bounds>& operator[](Statistic which) const {
    return of[static_cast<std::size_t>(which)];
  }
};

/// The norm is of the tensor's own format, bfloat16's eight bits at the least.
constexpr double kNormError = 0x1p-7;
/// The dynamic range is log2(largest) - log2(smallest nonzero magnitude), each rounded to binary32:
/// below 150, by an error of 2^-16 at most, and their difference once more.
constexpr double kLogErrors = 0x1p-14;

constexpr Contradiction kNegativeRange{"dynamic_range is negative", "it is not used"};

common::PrintedExtremes extremes_of(const Statistics& found) {
  return {found[Statistic::min], found[Statistic::max], found[Statistic::amax],
          found[Statistic::norm], kNormError};
}

std::optional<common::Magnitudes> magnitudes_of(const Statistics& found,
                                                std::vector<const Contradiction*>& wrong) {
  std::optional<common::Magnitudes> known = common::magnitudes_of(extremes_of(found), wrong);
  const auto& range = found[Statistic::dynamic_range];
  if (range && range->high < 0 && std::isfinite(range->high)) wrong.push_back(&kNegativeRange);
  if (!known || !range || known->smallest_nonzero || range->high < 0) return known;
  const double least = known->largest.low * std::exp2(-(range->high + kLogErrors));
  // The product and exp2 are rounded by less than 2^-50.
  if (std::isfinite(least) && least > 0) known->smallest_nonzero = least * (1 - 0x1p-40);
  return known;
}

/// One file: that of a rank. Of an entry that comes again the last one holds.
class RankFile {
 public:
  void read(const log::OpenPath& file, std::uint64_t before, std::uint64_t in_all, PeakTable& peaks,
            Notes& notes, const frames::Progress& progress) {
    common::TextLines lines(file, progress, before, in_all);
    common::BadLines bad;
    while (const auto line = lines.next()) {
      if (const auto why = take(*line, lines.number()); !why.empty()) bad.add(lines.number(), why);
    }
    bad.tell(lines.name(), notes);
    tell(peaks, lines.name(), notes);
  }

 private:
  void tell(PeakTable& peaks, const std::string& file, Notes& notes) const {
    common::Contradictions contradictions;
    for (const auto& [name, steps] : tensors_) {
      for (const auto& [step, found] : steps) {
        std::vector<const Contradiction*> wrong;
        if (const auto known = magnitudes_of(found, wrong)) {
          peaks.add(name, role_of(name), step, *known);
        }
        for (const Contradiction* kind : wrong) {
          contradictions.add(*kind, found.line, found_text(name, step, found));
        }
      }
    }
    contradictions.tell(file, notes);
  }

  static std::string found_text(const std::string& name, std::int64_t step,
                                const Statistics& found) {
    const auto& range = found[Statistic::dynamic_range];
    return fmt::format("'{}', iteration {}: {}{}", log::printable(name), step,
                       common::text_of(extremes_of(found)),
                       range ? ", dynamic_range=" + common::text_of(*range) : "");
  }

  /// What is wrong with a line; empty where nothing is.
  std::string_view take(std::string_view line, std::uint64_t number) {
    if (line.size() > kLongestLine) return "is longer than 16 KiB";
    const std::optional<Entry> entry = entry_in(line);
    if (!entry) return {};  // other messages
    const auto of = split(entry->name);
    if (!of) return {};
    const std::optional<std::int64_t> step = common::integer_in(entry->step);
    const std::optional<double> value = common::number_in(entry->value);
    if (!step) return "its iteration is not an integer";
    if (!value) return "its value is not a number";
    if (of->second == Statistic::amax && *value < 0) return "its amax is negative";
    Statistics& found = tensors_[std::string(of->first)][*step];
    found.of[static_cast<std::size_t>(of->second)] = common::printed_bounds(*value, kLastDigit);
    found.line = number;
    return {};
  }

  std::map<std::string, std::map<std::int64_t, Statistics>> tensors_;
};

bool is_one_file(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, kLookedAt);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const auto entry = entry_in(std::string_view(text).substr(at, end - at));
    if (entry && common::integer_in(entry->step) && common::number_in(entry->value)) return true;
    at = end + 1;
  }
  return false;
}

constexpr int kLevels = 1;  // log_dir/nvdlfw_inspect_statistics_logs

}  // namespace

bool is_te_statistics(const log::OpenPath& log) {
  return common::any_file_below(log, kLevels, is_one_file);
}

void read_te_statistics(const log::OpenPath& log, const common::TimelineSelection& selection,
                        const frames::Visitor& visit, Notes& notes,
                        const frames::Progress& progress) {
  const auto read = [&](const log::OpenPath& file, std::uint64_t before, std::uint64_t in_all,
                        PeakTable& peaks) {
    RankFile().read(file, before, in_all, peaks, notes, progress);
  };
  common::read_peaks("Transformer Engine statistics", log,
                     common::files_below(log, kLevels, is_one_file), read, selection, visit, notes);
}

}  // namespace halfscope::analyzers::readers::statistics
