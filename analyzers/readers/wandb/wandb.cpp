// SPDX-License-Identifier: Apache-2.0
// How watch() makes histograms, by wandb/integration/torch/wandb_torch.py (log_tensor_stats):
// infinities and NaN are dropped without a count; torch.histc puts the rest into 64 buckets of one
// width between the least and the largest value; the edges beside them are torch.linspace of the
// same ends. Both work in binary32: a value beside an edge may be counted on its other side, and a
// bucket of 2^24 values or more is not counted exactly. wandb.Histogram(values) is np.histogram.
#include "analyzers/readers/wandb/wandb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/histogram.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/lines/scalar_log.hpp"
#include "analyzers/readers/wandb/json_rows.hpp"

namespace halfscope::analyzers::readers::wandb {

using common::TimelineSelection;
using frames::Notes;
using frames::Progress;
using frames::Visitor;

namespace {

namespace fs = std::filesystem;
using frames::Gap;
using log::printable;

constexpr std::size_t kLookedAt = std::size_t{1} << 18;
constexpr double kInexactFrom = 0x1p24;
constexpr common::Contradiction kNoStep{
    "\"_step\" is not a whole number",
    "such a row gets its position in the file as its number, from 0"};

/// A bucket's place, (x - min) * 64 / (max - min) in binary32, is off by three roundings of at most
/// 64 * 2^-24; its edge in linspace by three more; all of a range of at most twice the larger end.
double slack_of(const common::Histogram& h) {
  if (h.edges.empty()) return 0;
  return 0x1p-20 * std::max(std::abs(h.edges.front()), std::abs(h.edges.back()));
}

bool is_one_file(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, kLookedAt);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || (text[first] != '{' && text[first] != '[')) return false;
  constexpr std::string_view signs[] = {"\"_step\"", "\"packedBins\"", "\"_type\":\"histogram\"",
                                        "\"_type\": \"histogram\""};
  return std::any_of(std::begin(signs), std::end(signs), [&text](std::string_view sign) {
    return text.find(sign) != std::string::npos;
  });
}

/// Whether a file has one object a line, as its first line shows.
bool has_lines_of_objects(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, kLookedAt);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const std::size_t end = text.find_first_of("\r\n", first);
  if (first == std::string::npos || text[first] != '{') return false;
  return end == std::string::npos || text[text.find_last_not_of(" \t", end - 1)] == '}';
}

class WandbReader {
 public:
  WandbReader(const log::OpenPath& log, const TimelineSelection& selection, const Visitor& visit,
              Notes& notes, const Progress& progress)
      : log_(log),
        selection_(selection),
        notes_(notes),
        files_(common::files_below(log, 0, is_one_file)),
        scalars_(log, files_, selection, visit, notes, progress, 2),
        timeline_(scalars_.timeline()) {}

  void read() {
    for_each_row([this](const JsonRow& row, std::int64_t step) { take_scalars(row, step); });
    scalars_.tell_scalars();
    std::vector<std::string> names;
    for (const auto& [name, steps] : seen_) names.push_back(name);
    timeline_.names(names);
    for_each_row([this](const JsonRow& row, std::int64_t step) { take_tensors(row, step); });
    tell_notes();
    scalars_.finish({.name = "Weights & Biases history", .gaps = gaps()});
  }

 private:
  /// Called twice: notes that come again count once.
  void for_each_row(const std::function<void(const JsonRow&, std::int64_t step)>& take) {
    for (const fs::path& file : files_) {
      common::Contradictions contradictions;
      std::uint64_t line = 0;  // 0: rows are not lines
      std::int64_t rows = 0;
      const auto visit = [&](JsonRow&& row) {
        counted_steps_ |= !row.step;
        if (!row.odd_step.empty()) {
          contradictions.add(kNoStep, line,
                             fmt::format("row {}: {}", rows, printable(row.odd_step)));
        }
        take(row, row.step.value_or(rows));
        ++rows;
        return true;
      };
      const auto parse = [&](std::string_view text) {
        return read_json_rows(text, {.step = "_step"}, visit);
      };
      if (has_lines_of_objects(log_.at(file))) {
        scalars_.read_lines(file, [&](std::string_view text, std::uint64_t number) {
          line = number;
          return parse(text);
        });
      } else {
        scalars_.read_whole(file, parse);
      }
      contradictions.tell(printable(file.string()), notes_);
    }
  }

  void take_scalars(const JsonRow& row, std::int64_t step) {
    for (const auto& [tag, value] : row.scalars) {
      if (!tag.starts_with('_')) scalars_.add(scalars_.series(tag), step, value);
    }
    for (const auto& [name, histogram] : row.histograms) seen_.try_emplace(name);
    if (!row.histograms.empty()) steps_.insert(step);
  }

  void take_tensors(const JsonRow& row, std::int64_t step) {
    for (const auto& [name, histogram] : row.histograms) {
      if (!timeline_.wants(name, step)) continue;
      if (!seen_[name].insert(step).second) {
        ++repeated_;
        continue;
      }
      take(name, step, histogram);
    }
  }

  void take(const std::string& name, std::int64_t step, common::Histogram histogram) {
    histogram.nonfinite_known = false;
    histogram.slack = slack_of(histogram);
    try {
      if (histogram.counts.empty()) throw std::invalid_argument("has no counts");
      if (histogram.edges.empty()) throw std::invalid_argument("has no edges");
      const double end =
          std::max(std::abs(histogram.edges.front()), std::abs(histogram.edges.back()));
      if (!std::isfinite(end * (1 + 0x1p-24))) {
        throw std::invalid_argument(
            "its edges are not finite, as the extremes of finite values are");
      }
      // The outer edges are the extremes, rounded to binary32 where the tensor is of binary64.
      BoundedTable table = common::table_of(histogram);
      if (end > 0) table.limit_largest(magnitude_of(end * (1 + 0x1p-24)));
      const double most = *std::max_element(histogram.counts.begin(), histogram.counts.end());
      most < kInexactFrom ? tell_counts(name, step, std::move(table))
                          : tell_extreme(name, step, table);
    } catch (const std::invalid_argument& wrong) {
      if (unusable_++ == 0) {
        first_unusable_ = fmt::format("'{}', step {}: {}", printable(name), step, wrong.what());
      }
    }
  }

  void tell_counts(const std::string& name, std::int64_t step, BoundedTable table) {
    hides_underflow_ |= common::hides_underflow(table);
    frames::Frame frame;
    frame.name = name;
    frame.step = step;
    frame.table = std::move(table);
    timeline_.tensor(std::move(frame));
  }

  void tell_extreme(const std::string& name, std::int64_t step, const BoundedTable& table) {
    ++inexact_;
    const auto most = table.largest();
    if (!most) return;
    frames::StepPeak peak;
    peak.step = step;
    peak.tensor = name;
    peak.max_abs = to_double(*most);
    const auto least = table.largest_at_least();
    if (!least || *least < *most) peak.at_least = least ? to_double(*least) : 0.0;
    if (const auto smallest = table.smallest()) peak.min_abs_nonzero = to_double(*smallest);
    timeline_.peak(std::move(peak));
  }

  void tell_notes() {
    const std::string shown = printable(log_.path.string());
    const auto count = [](std::uint64_t n) {
      return n == 1 ? std::string("a histogram is") : fmt::format("{} histograms are", n);
    };
    if (unusable_ > 0) {
      notes_.add(
          fmt::format("{}: {} skipped; the first is {}", shown, count(unusable_), first_unusable_));
    }
    if (inexact_ > 0) {
      notes_.add(fmt::format(
          "{}: {} read for the largest magnitudes only: a bucket has 2^24 values or more, which "
          "watch() counts in binary32, not exactly",
          shown, count(inexact_)));
    }
    if (repeated_ > 0) {
      notes_.add(fmt::format("{}: {} there twice at a step; the first of each is used", shown,
                             count(repeated_)));
    }
  }

  std::vector<Gap> gaps() const {
    if (seen_.empty()) return {Gap::tensors};
    std::vector<Gap> gaps{Gap::zeros};
    if (hides_underflow_) gaps.push_back(Gap::underflow);
    gaps.push_back(Gap::nonfinite);
    gaps.push_back(Gap::dtype);
    if (!selection_.recorded_scale && !selection_.scale_tag) gaps.push_back(Gap::loss_scale);
    if (inexact_ > 0) gaps.push_back(Gap::counts);
    gaps.push_back(Gap::updates);
    if (counted_steps_) gaps.push_back(Gap::steps);
    const auto apart = [](std::int64_t a, std::int64_t b) { return b - 1 != a; };
    const bool skips = std::adjacent_find(steps_.begin(), steps_.end(), apart) != steps_.end();
    if (skips) gaps.push_back(Gap::every_step);
    return gaps;
  }

  const log::OpenPath& log_;
  const TimelineSelection& selection_;
  Notes& notes_;
  std::vector<fs::path> files_;
  lines::ScalarLog scalars_;
  common::Timeline& timeline_;
  std::set<std::int64_t> steps_;                        // that have histograms
  std::map<std::string, std::set<std::int64_t>> seen_;  // all names, and the steps that were told
  bool counted_steps_ = false;                          // rows without "_step"
  bool hides_underflow_ = false;
  std::uint64_t unusable_ = 0, inexact_ = 0, repeated_ = 0;
  std::string first_unusable_;
};

}  // namespace

bool is_wandb(const log::OpenPath& log) { return common::any_file_below(log, 0, is_one_file); }

void read_wandb(const log::OpenPath& log, const TimelineSelection& selection, const Visitor& visit,
                Notes& notes, const Progress& progress) {
  WandbReader(log, selection, visit, notes, progress).read();
}

}  // namespace halfscope::analyzers::readers::wandb
