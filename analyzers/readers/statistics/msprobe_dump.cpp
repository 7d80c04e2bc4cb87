// SPDX-License-Identifier: Apache-2.0
// By docs/en/dump of msprobe: DUMP_PATH/step0/rank0/dump.json, a file for each step and rank; the
// folder of a run without ranks is "rank". Nodes stand in the order in which they ran.
#include "analyzers/readers/statistics/msprobe_dump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analyzers/readers/common/json_text.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/peak_table.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/statistics/msprobe_nodes.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::analyzers::readers::statistics {
namespace {

namespace fs = std::filesystem;
using common::PeakTable;
using log::printable;

constexpr int kDumpLevels = 2;  // DUMP_PATH/step0/rank0/dump.json
constexpr std::size_t kDumpLookedAt = std::size_t{1} << 12;

bool is_dump_file(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, kDumpLookedAt);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return false;
  const auto has = [&](std::string_view key) { return text.find(key) != std::string::npos; };
  return has("\"task\"") && has("\"dump_data_dir\"") && has("\"data\"");
}

/// The number of the nearest folder above a file that is called so: 3 of "step3".
std::optional<std::int64_t> folder_number(const fs::path& file, std::string_view word) {
  std::error_code unreadable;
  for (fs::path folder = fs::absolute(file, unreadable).parent_path(); folder.has_filename();
       folder = folder.parent_path()) {
    const std::string name = folder.filename().string();
    if (!name.starts_with(word)) continue;
    const auto number = common::integer_in(std::string_view(name).substr(word.size()));
    if (number && *number >= 0 && *number < common::kLargestStep) return number;
  }
  return std::nullopt;
}

/// -inf beside a finite maximum: what an attention mask adds.
bool is_mask(const NodeTensor& tensor) {
  return std::isinf(tensor.min) && std::isfinite(tensor.max);
}

bool is_finite(const NodeTensor& tensor) {
  return is_mask(tensor) || (std::isfinite(tensor.max) && std::isfinite(tensor.min));
}

double largest_of(const NodeTensor& tensor) {
  if (is_mask(tensor)) return std::abs(tensor.max);
  if (std::isnan(tensor.max) || std::isnan(tensor.min)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::max(std::abs(tensor.max), std::abs(tensor.min));
}

/// Where all values have one sign, the least of them is known.
std::optional<double> smallest_of(const NodeTensor& tensor) {
  if (!std::isfinite(tensor.max) || !std::isfinite(tensor.min)) return std::nullopt;
  if (tensor.min > 0) return tensor.min;
  return tensor.max < 0 ? std::optional(-tensor.max) : std::nullopt;
}

/// A node whose inputs are finite and whose outputs are not.
struct FirstNode {
  std::int64_t step = 0, rank = 0;
  std::uint64_t place = 0;  ///< among the nodes of its file, from 1
  std::string name;

  bool before(const FirstNode& other) const {
    return std::tie(step, place, rank) < std::tie(other.step, other.place, other.rank);
  }
};

/// The dumps of all steps and ranks.
class Dumps {
 public:
  void read(const log::OpenPath& file, PeakTable& peaks, frames::Notes& notes) {
    const auto step = folder_number(file.path, "step");
    without_step_ += step ? 0 : 1;
    at_ = {step.value_or(0), folder_number(file.path, "rank").value_or(0), 0, {}};
    NodeReader nodes([&](const Node& node) { take(node, peaks); });
    const std::string why = common::read_json(log::read_text(file), nodes);
    if (!why.empty()) {
      notes.add(printable(file.path.string()) + ": " + why + "; the rest is not read");
    }
  }

  void tell(const std::string& log, std::size_t files, frames::Notes& notes) const {
    if (first_) {
      notes.add(fmt::format(
          "{}: step {}{}: '{}', node {} of its dump, is the first with finite inputs and NaN or "
          "infinite outputs",
          log, first_->step, files > 1 ? fmt::format(", rank {}", first_->rank) : "",
          printable(first_->name), first_->place));
    }
    if (masks_ > 0) {
      notes.add(fmt::format(
          "{}: {} with a minimum of -inf and a finite maximum are taken for masks: their largest "
          "finite value is used",
          log, masks_ == 1 ? "a tensor" : fmt::format("{} tensors", masks_)));
    }
    if (without_values_ > 0) {
      notes.add(fmt::format(
          "{}: {} Max and Min, or a name of 512 characters at most, and skipped", log,
          without_values_ == 1 ? "a tensor is without"
                               : fmt::format("{} tensors are without", without_values_)));
    }
    if (without_step_ > 0 && files > 1) {
      notes.add(fmt::format("{}: {} of {} dumps lie in no folder stepN and count as step 0", log,
                            without_step_, files));
    }
  }

 private:
  void take(const Node& node, PeakTable& peaks) {
    ++at_.place;
    without_values_ += node.without_values;
    bool inputs = false, finite_inputs = true, finite_outputs = true;
    for (const NodeTensor& tensor : node.tensors) {
      masks_ += is_mask(tensor) ? 1 : 0;
      inputs |= !tensor.is_output;
      (tensor.is_output ? finite_outputs : finite_inputs) &= is_finite(tensor);
      const double largest = largest_of(tensor);
      peaks.add(tensor.name, tensor.role, at_.step, {{largest, largest}, smallest_of(tensor)});
    }
    if (!inputs || !finite_inputs || finite_outputs) return;
    at_.name = node.name;
    if (!first_ || at_.before(*first_)) first_ = at_;
  }

  FirstNode at_;
  std::optional<FirstNode> first_;
  std::uint64_t masks_ = 0, without_values_ = 0, without_step_ = 0;
};

}  // namespace

bool is_msprobe_dump(const log::OpenPath& log) {
  return common::any_file_below(log, kDumpLevels, is_dump_file);
}

void read_msprobe_dump(const log::OpenPath& log, const common::TimelineSelection& selection,
                       const frames::Visitor& visit, frames::Notes& notes,
                       const frames::Progress& progress) {
  const std::vector<fs::path> files = common::files_below(log, kDumpLevels, is_dump_file);
  Dumps dumps;
  const auto read = [&](const log::OpenPath& file, std::uint64_t before, std::uint64_t in_all,
                        PeakTable& peaks) {
    dumps.read(file, peaks, notes);
    const std::uint64_t done = before + common::bytes_of(log, {file.path});
    if (progress) progress(done, std::max(done, in_all));
  };
  common::PeakLog kind = "msprobe dump";
  kind.rounded = false;
  kind.in_order = true;
  kind.has_dtypes = true;  // of others it takes no tensor
  common::read_peaks(kind, log, files, read, selection, visit, notes);
  dumps.tell(printable(log.path.string()), files.size(), notes);
}

}  // namespace halfscope::analyzers::readers::statistics
