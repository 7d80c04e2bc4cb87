// SPDX-License-Identifier: Apache-2.0
// How watch() makes histograms, by wandb/integration/torch/wandb_torch.py (log_tensor_stats): it
// drops infinities and NaN without a count. torch.histc counts the other values in 64 buckets of
// one width between the least and the largest value. The edges are torch.linspace of the same ends.
// Both work in binary32: a value next to an edge may be counted on the other side of it, and a
// bucket of 2^24 values or more is not counted exactly. wandb.Histogram(values) is np.histogram.
#include "analyzers/readers/wandb/wandb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/histogram.hpp"
#include "analyzers/readers/common/json_text.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/lines/scalar_log.hpp"

namespace halfscope::analyzers::readers::wandb {
namespace {

namespace fs = std::filesystem;
using common::Histogram;
using common::JsonObject;
using common::NamedValues;
using frames::Gap;
using log::printable;

constexpr double kInexactFrom = 0x1p24;
constexpr double kMostBins = 0x1p16;  // W&B has 512 at most
constexpr common::Contradiction kNoStep{
    "\"_step\" is not a whole number",
    "such a row gets its position in the file as its number, from 0"};

bool is_one_file(const log::OpenPath& file) {
  const std::string text = common::json_beginning_of(file);
  return common::has_all(text, {"\"_step\""}) || common::has_all(text, {"\"packedBins\""}) ||
         common::has_all(text, {"\"_type\":\"histogram\""}) ||
         common::has_all(text, {"\"_type\": \"histogram\""});
}

/// Returns true if a file has one object in each line, judged by the first line.
bool has_lines_of_objects(const log::OpenPath& file) {
  const std::string text = common::json_beginning_of(file);
  const std::size_t end = text.find_first_of("\r\n");
  if (!text.starts_with('{')) return false;
  return end == std::string::npos || text[text.find_last_not_of(" \t", end - 1)] == '}';
}

/// Returns the edges of "packedBins", bins of one width that W&B's server makes; empty if their
/// count is not usable.
std::vector<double> edges_of(const JsonObject& packed) {
  const auto number = [&](std::string_view key) {
    return packed.numbers.named(key).value_or(std::numeric_limits<double>::quiet_NaN());
  };
  const double min = number("min"), size = number("size"), count = number("count");
  std::vector<double> edges;
  if (!(count >= 0 && count < kMostBins)) return edges;
  const auto bins = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i <= bins; ++i) edges.push_back(min + static_cast<double>(i) * size);
  return edges;
}

/// The table of a histogram of watch(). Throws std::invalid_argument if the histogram is not
/// usable.
BoundedTable table_of_watch(Histogram histogram) {
  if (histogram.counts.empty()) throw std::invalid_argument("has no counts");
  if (histogram.edges.empty()) throw std::invalid_argument("has no edges");
  const double end = std::max(std::abs(histogram.edges.front()), std::abs(histogram.edges.back()));
  // The outer edges are the extremes, perhaps rounded to binary32.
  const double most = end * (1 + 0x1p-24);
  if (!std::isfinite(most)) {
    throw std::invalid_argument("its edges are not finite, as the extremes of finite values are");
  }
  histogram.nonfinite_known = false;
  // A bucket's index, (x - min) * 64 / (max - min) in binary32, is off by three roundings of at
  // most 64 * 2^-24, its edge in linspace by three more. The range is at most twice the larger end.
  histogram.slack = 0x1p-20 * end;
  BoundedTable table = common::table_of(histogram);
  if (end > 0) table.limit_largest(magnitude_of(most));
  return table;
}

class WandbReader {
 public:
  WandbReader(const log::OpenPath& log, const common::TimelineSelection& selection,
              const frames::Visitor& visit, frames::Notes& notes, const frames::Progress& progress)
      : log_(log),
        selection_(selection),
        notes_(notes),
        paths_(common::files_below(log, 0, is_one_file)),
        scalars_(log, paths_, selection, visit, notes, progress, 2),
        timeline_(scalars_.timeline()) {}

  void read() {
    read_files();  // for the scalars, which must come first
    scalars_.report_scalars();
    std::vector<std::string> names;
    for (const auto& [name, steps] : seen_) names.push_back(name);
    timeline_.names(names);
    scalars_reported_ = true;
    read_files();
    add_notes();
    scalars_.finish({.name = "Weights & Biases history", .gaps = gaps()});
  }

 private:
  void read_files() {
    for (const fs::path& path : paths_) {
      line_ = 0;
      rows_ = 0;
      contradictions_ = {};
      const auto parse = [this](std::string_view text) {
        row_ = {};
        return common::read_json(text, [this](auto around, const JsonObject& object) {
          take(around, object);
          return true;
        });
      };
      const auto parse_line = [&](std::string_view text, std::uint64_t line) {
        line_ = line;
        return parse(text);
      };
      if (has_lines_of_objects(log_.at(path))) {
        scalars_.files().read_lines(path, parse_line, common::kLongestLine);
      } else {
        scalars_.files().read_whole(path, parse);
      }
      contradictions_.tell(printable(path.string()), notes_);
    }
  }

  /// Adds the next object: a row, or an object in a row. Objects in arrays of a row are skipped.
  /// Names of nested values are joined by dots, as W&B does.
  void take(std::span<const common::JsonLevel> around, const JsonObject& object) {
    if (!around.empty() && around.front().is_array) around = around.subspan(1);
    std::string name;
    for (const common::JsonLevel& level : around) {
      if (level.is_array) return;
      name += (name.empty() ? "" : ".") + level.key;
    }
    if (!around.empty() && object.texts.named("_type") == "histogram") {
      Histogram histogram;
      histogram.counts = object.lists.named("values").value_or(std::vector<double>());
      histogram.edges = object.lists.named("bins").value_or(std::exchange(row_.packed_edges, {}));
      row_.histograms.emplace_back(name, std::move(histogram));
    } else if (!around.empty() && around.back().key == "packedBins") {
      row_.packed_edges = edges_of(object);
    } else {
      if (!around.empty()) name += '.';
      for (const auto& [key, value] : object.numbers) row_.scalars.emplace_back(name + key, value);
    }
    if (around.empty()) end_row(object);
  }

  void end_row(const JsonObject& object) {
    constexpr std::size_t kShown = 40;
    const auto number = object.numbers.named("_step");
    const auto text = object.texts.named("_step");
    const auto step = number ? lines::whole_step(*number) : std::nullopt;
    counted_steps_ |= !step;
    if (!step && (number || text)) {
      const std::string odd =
          number ? fmt::format("{}", *number) : "'" + text->substr(0, kShown) + "'";
      contradictions_.add(kNoStep, line_, fmt::format("row {}: {}", rows_, printable(odd)));
    }
    scalars_reported_ ? take_tensors(step.value_or(rows_)) : take_scalars(step.value_or(rows_));
    ++rows_;
    row_ = {};
  }

  void take_scalars(std::int64_t step) {
    for (const auto& [tag, value] : row_.scalars) {
      if (!tag.starts_with('_')) scalars_.series(tag).add(step, value);
    }
    for (const auto& [name, histogram] : row_.histograms) seen_.try_emplace(name);
    if (!row_.histograms.empty()) steps_.insert(step);
  }

  void take_tensors(std::int64_t step) {
    for (const auto& [name, histogram] : row_.histograms) {
      if (!timeline_.wants(name, step)) continue;
      if (!seen_[name].insert(step).second) {
        ++repeated_;
        continue;
      }
      try {
        BoundedTable table = table_of_watch(histogram);
        const bool exact = std::ranges::max(histogram.counts) < kInexactFrom;
        exact ? add_frame(name, step, std::move(table)) : add_peak(name, step, table);
      } catch (const std::invalid_argument& wrong) {
        if (unusable_++ > 0) continue;
        first_unusable_ = fmt::format("'{}', step {}: {}", printable(name), step, wrong.what());
      }
    }
  }

  void add_frame(const std::string& name, std::int64_t step, BoundedTable table) {
    hides_underflow_ |= common::hides_underflow(table);
    frames::Frame frame;
    frame.name = name;
    frame.step = step;
    frame.table = std::move(table);
    timeline_.tensor(std::move(frame));
  }

  void add_peak(const std::string& name, std::int64_t step, const BoundedTable& table) {
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

  void add_notes() {
    const auto note = [this](std::uint64_t count, const std::string& text) {
      if (count == 0) return;
      const auto some = count == 1 ? "a histogram is" : fmt::format("{} histograms are", count);
      notes_.add(fmt::format("{}: {} {}", printable(log_.path.string()), some, text));
    };
    note(unusable_, "skipped; the first is " + first_unusable_);
    note(inexact_,
         "read for the largest magnitudes only: a bucket has 2^24 values or more, which watch() "
         "counts in binary32, not exactly");
    note(repeated_, "there twice at a step; the first of each is used");
  }

  std::vector<Gap> gaps() const {
    if (seen_.empty()) return {Gap::tensors};
    std::vector<Gap> gaps{Gap::zeros};
    if (hides_underflow_) gaps.push_back(Gap::underflow);
    gaps.insert(gaps.end(), {Gap::nonfinite, Gap::dtype});
    if (!selection_.knows_scale()) gaps.push_back(Gap::loss_scale);
    if (inexact_ > 0) gaps.push_back(Gap::counts);
    gaps.push_back(Gap::updates);
    if (counted_steps_) gaps.push_back(Gap::steps);
    if (common::skips_steps(steps_)) gaps.push_back(Gap::every_step);
    return gaps;
  }

  const log::OpenPath& log_;
  const common::TimelineSelection& selection_;
  frames::Notes& notes_;
  std::vector<fs::path> paths_;
  lines::ScalarLog scalars_;
  common::Timeline& timeline_;
  bool scalars_reported_ = false;          ///< the first pass over the files is done
  common::Contradictions contradictions_;  ///< in the current file
  std::uint64_t line_ = 0;                 ///< current line; 0 if rows are not lines
  std::int64_t rows_ = 0;                  ///< rows read so far in the current file
  struct Row {
    NamedValues<double> scalars;
    NamedValues<Histogram> histograms;                  ///< edges and counts, not checked
    std::vector<double> packed_edges;                   ///< edges of the current histogram
  } row_;                                               ///< the current row
  std::set<std::int64_t> steps_;                        ///< steps that have histograms
  std::map<std::string, std::set<std::int64_t>> seen_;  ///< by name: steps already read
  bool counted_steps_ = false;                          ///< a row had no "_step"
  bool hides_underflow_ = false;
  std::uint64_t unusable_ = 0, inexact_ = 0, repeated_ = 0;
  std::string first_unusable_;
};

}  // namespace

bool is_wandb(const log::OpenPath& log) { return common::any_file_below(log, 0, is_one_file); }

void read_wandb(const log::OpenPath& log, const common::TimelineSelection& selection,
                const frames::Visitor& visit, frames::Notes& notes,
                const frames::Progress& progress) {
  WandbReader(log, selection, visit, notes, progress).read();
}

}  // namespace halfscope::analyzers::readers::wandb
