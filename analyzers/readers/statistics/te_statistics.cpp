// SPDX-License-Identifier: Apache-2.0
// A line, by nvdlfw_inspect/logging.py (FileLogger.log_scalar, {:06d} and {:.4f}):
//   2026-01-01 00:00:00,000 - INFO - LAYER_TENSOR_STATISTIC \t\t iteration=000002 \t\t value=0.0000
// The statistics are computed in transformer_engine/debug/features/utils/stats_computation.py.
#include <fmt/format.h>

#include <algorithm>
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
#include "analyzers/readers/statistics/statistics.hpp"
#include "analyzers/readers/statistics/te_printed.hpp"
#include "analyzers/readers/statistics/te_quantised.hpp"

namespace halfscope::analyzers::readers::statistics {

using common::Contradiction;
using common::PeakTable;
using frames::Notes;

namespace {

constexpr std::size_t kTeLookedAt = std::size_t{1} << 16;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The part behind the last blank.
std::string_view last_word(std::string_view text) {
  std::size_t at = text.size();
  while (at > 0 && text[at - 1] != ' ' && text[at - 1] != '\t') --at;
  return text.substr(at);
}

/// The position of "KEY=" from `from` on, or npos. Searches for the sign, which is rarer than the
/// letters.
std::size_t find_key(std::string_view line, std::string_view key, std::size_t from) {
  std::size_t sign = line.find('=', from);
  while (sign != std::string_view::npos) {
    if (line.substr(from, sign - from).ends_with(key)) return sign - key.size();
    sign = line.find('=', sign + 1);
  }
  return sign;
}

/// The parts of a line, as written.
struct TeEntry {
  std::string_view name, step, value;
};
std::optional<TeEntry> entry_in(std::string_view line) {
  constexpr std::string_view step_is = "iteration", value_is = "value";
  const std::size_t step = find_key(line, step_is, 0);
  if (step == std::string_view::npos) return std::nullopt;
  const std::size_t digits = step + step_is.size() + 1;
  const std::size_t value = find_key(line, value_is, digits);
  if (value == std::string_view::npos) return std::nullopt;
  TeEntry entry;
  entry.name = last_word(trimmed(line.substr(0, step)));
  entry.step = trimmed(line.substr(digits, value - digits));
  entry.value = trimmed(line.substr(value + value_is.size() + 1));
  if (entry.name.empty()) return std::nullopt;
  return entry;
}

/// The statistics of one tensor at one step in one file.
struct Statistics {
  std::array<std::optional<common::Bounds>, kMagnitudes> of;
  std::uint64_t line = 0;  ///< line of the last statistic
  const std::optional<common::Bounds>& operator[](Magnitude which) const {
    return of[static_cast<std::size_t>(which)];
  }
};

/// Relative. The norm is rounded to the tensor's own format, with at least 8 significant bits.
constexpr double kTeNormError = 0x1p-7;
/// The error of the dynamic range, log2(largest) - log2(smallest nonzero magnitude). Each logarithm
/// is below 150 and rounded to binary32, with an error of at most 2^-16, and so is the difference.
constexpr double kLogErrors = 0x1p-14;

constexpr Contradiction kNegativeRange{"dynamic_range is negative", "it is not used"};

common::PrintedExtremes extremes_of(const Statistics& found) {
  return {found[Magnitude::min], found[Magnitude::max], found[Magnitude::amax],
          found[Magnitude::norm], kTeNormError};
}

std::optional<common::Magnitudes> magnitudes_of(const Statistics& found,
                                                std::vector<const Contradiction*>& wrong) {
  std::optional<common::Magnitudes> known = common::magnitudes_of(extremes_of(found), wrong);
  const auto& range = found[Magnitude::dynamic_range];
  if (range && range->high < 0 && std::isfinite(range->high)) wrong.push_back(&kNegativeRange);
  if (!known || !range || known->smallest_nonzero || range->high < 0) return known;
  const double least = known->largest.low * std::exp2(-(range->high + kLogErrors));
  // The product and exp2 are rounded by less than 2^-50.
  if (std::isfinite(least) && least > 0) known->smallest_nonzero = least * (1 - 0x1p-40);
  return known;
}

/// The magnitudes of one tensor in one file: each step's statistics from up to five series.
class TensorMagnitudes {
 public:
  void add(Magnitude which, const PrintedSeries& series) {
    of_[static_cast<std::size_t>(which)] = &series;
  }
  const TeName& name() const {
    return (*std::find_if(of_.begin(), of_.end(), [](const auto* s) { return s != nullptr; }))
        ->name;
  }
  /// Calls visit(step, statistics) for each step, ascending.
  template <typename Visit>
  void for_each_step(const Steps& steps, const Visit& visit) const {
    std::array<std::size_t, kMagnitudes> at{};
    while (const std::optional<std::int64_t> step = first_of(at, steps)) {
      Statistics found;
      for (std::size_t i = 0; i < kMagnitudes; ++i) {
        if (of_[i] == nullptr || at[i] == of_[i]->steps.size()) continue;
        if (steps[of_[i]->steps[at[i]]] != *step) continue;
        found.of[i] = common::printed_bounds(of_[i]->values[at[i]], kLastDigit);
        found.line = std::max<std::uint64_t>(found.line, of_[i]->lines[at[i]]);
        ++at[i];
      }
      visit(*step, found);
    }
  }

 private:
  std::optional<std::int64_t> first_of(const std::array<std::size_t, kMagnitudes>& at,
                                       const Steps& steps) const {
    std::optional<std::int64_t> first;
    for (std::size_t i = 0; i < kMagnitudes; ++i) {
      if (of_[i] == nullptr || at[i] == of_[i]->steps.size()) continue;
      const std::int64_t step = steps[of_[i]->steps[at[i]]];
      first = std::min(first.value_or(step), step);
    }
    return first;
  }

  std::array<const PrintedSeries*, kMagnitudes> of_{};
};

/// The file of one rank. If an entry comes again, the last one is used.
class RankFile {
 public:
  RankFile(Steps& steps, QuantisedRanks& ranks) : steps_(steps), ranks_(ranks) {}

  void read(const std::filesystem::path& file, common::TextFiles& text, PeakTable& peaks,
            Notes& notes) {
    text.read_lines(file, [&](std::string_view line, std::uint64_t number) {
      return std::string(take(line, number));
    });
    printed_.sort(steps_);
    report_magnitudes(peaks);
    wrong_.tell(log::printable(file.string()), notes);
    ranks_.add(std::move(printed_), steps_);
  }

 private:
  void report_magnitudes(PeakTable& peaks) {
    std::map<std::string_view, TensorMagnitudes> tensors;
    for (const PrintedSeries& series : printed_.all()) {
      const auto* const which = std::get_if<Magnitude>(&series.name.statistic);
      if (which != nullptr) tensors[series.name.tensor].add(*which, series);
    }
    for (const auto& [tensor, magnitudes] : tensors) {
      const std::string name(tensor);
      const log::Role role = magnitudes.name().role;
      magnitudes.for_each_step(steps_, [&](std::int64_t step, const Statistics& found) {
        std::vector<const Contradiction*> wrong;
        if (const auto known = magnitudes_of(found, wrong)) peaks.add(name, role, step, *known);
        for (const Contradiction* kind : wrong) {
          wrong_.add(*kind, found.line, found_text(name, step, found));
        }
      });
    }
  }

  static std::string found_text(const std::string& name, std::int64_t step,
                                const Statistics& found) {
    const auto& range = found[Magnitude::dynamic_range];
    return fmt::format("'{}', iteration {}: {}{}", log::printable(name), step,
                       common::text_of(extremes_of(found)),
                       range ? ", dynamic_range=" + common::text_of(*range) : "");
  }

  /// Returns the error in a line, or an empty text.
  std::string_view take(std::string_view line, std::uint64_t number) {
    const std::optional<TeEntry> entry = entry_in(line);
    if (!entry) return {};  // other messages
    PrintedSeries* const series = printed_.find(entry->name);
    if (series == nullptr) return {};
    const std::optional<std::int64_t> step = common::integer_in(entry->step);
    const std::optional<double> value = common::number_in(entry->value);
    if (!step) return "its iteration is not an integer";
    if (!value) return "its value is not a number";
    return std::holds_alternative<Magnitude>(series->name.statistic)
               ? take_magnitude(*series, *step, *value, number)
               : take_quantised(*series, *step, *value, number);
  }

  std::string_view take_magnitude(PrintedSeries& series, std::int64_t step, double value,
                                  std::uint64_t number) {
    if (std::get<Magnitude>(series.name.statistic) == Magnitude::amax && value < 0) {
      return "its amax is negative";
    }
    series.add(steps_.number_of(step), value);
    series.add_line(number);
    return {};
  }

  std::string_view take_quantised(PrintedSeries& series, std::int64_t step, double value,
                                  std::uint64_t number) {
    const auto statistic = std::get<Quantised>(series.name.statistic).statistic;
    if (const Contradiction* const wrong = wrong_with(statistic, value)) {
      wrong_.add(*wrong, number,
                 fmt::format("'{}', iteration {}: {}", log::printable(series.logged), step, value));
      return {};
    }
    series.add(steps_.number_of(step), value);
    return {};
  }

  Steps& steps_;
  QuantisedRanks& ranks_;
  PrintedFile printed_;
  common::Contradictions wrong_;
};

bool is_te_file(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, kTeLookedAt);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const auto entry = entry_in(std::string_view(text).substr(at, end - at));
    if (entry && common::integer_in(entry->step) && common::number_in(entry->value)) return true;
    at = end + 1;
  }
  return false;
}

constexpr int kTeLevels = 1;  // log_dir/nvdlfw_inspect_statistics_logs
constexpr std::string_view kFolder = "nvdlfw_inspect_statistics_logs";

/// Returns FOLDER/rank_0/nvdlfw_inspect_statistics_logs, ..., which NVIDIA BioNeMo's recipes write,
/// in the order of paths.
std::vector<std::filesystem::path> folders_of_ranks(const log::OpenPath& log) {
  std::vector<std::filesystem::path> folders = common::folders_of(log.path);
  for (std::filesystem::path& folder : folders) folder /= kFolder;
  std::erase_if(folders, [](const std::filesystem::path& folder) {
    std::error_code unreadable;
    return !std::filesystem::is_directory(folder, unreadable);
  });
  return folders;
}

std::vector<std::filesystem::path> files_of_log(const log::OpenPath& log) {
  std::vector<std::filesystem::path> files = common::files_below(log, kTeLevels, is_te_file);
  for (const std::filesystem::path& folder : folders_of_ranks(log)) {
    std::ranges::move(common::files_below(log.at(folder), 0, is_te_file),
                      std::back_inserter(files));
  }
  return files;
}

}  // namespace

bool is_te_statistics(const log::OpenPath& log) {
  if (common::any_file_below(log, kTeLevels, is_te_file)) return true;
  return std::ranges::any_of(folders_of_ranks(log), [&](const std::filesystem::path& folder) {
    return common::any_file_below(log.at(folder), 0, is_te_file);
  });
}

void read_te_statistics(const log::OpenPath& log, const common::TimelineSelection& selection,
                        const frames::Visitor& visit, Notes& notes,
                        const frames::Progress& progress) {
  Steps steps;
  QuantisedRanks ranks;
  const auto read = [&](const std::filesystem::path& file, common::TextFiles& text,
                        PeakTable& peaks) {
    RankFile(steps, ranks).read(file, text, peaks, notes);
  };
  common::read_peaks("Transformer Engine statistics", log, files_of_log(log), read, selection,
                     visit, notes, progress);
  ranks.report(steps, selection, visit, log.path.string(), notes);
}

}  // namespace halfscope::analyzers::readers::statistics
