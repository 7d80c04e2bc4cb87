// SPDX-License-Identifier: Apache-2.0
// Format, by docs/en/dump and msprobe/core/data_dump: DUMP_PATH/step0/rank0/dump.json, a file for
// each step and rank. The folder of a run without ranks is "rank". The file is {"task", "level",
// "framework", "dump_data_dir", "data": {NODE: {SECTION: [TENSOR, ..]}}}, its nodes in the order in
// which they ran. Nodes are "Module.conv1.Conv2d.forward.0", "Functional.relu.0.backward" or
// "Module.conv1.Conv2d.parameters_grad". A forward pass has the sections input_args, input_kwargs,
// parameters and output, a backward pass input and output; those of parameters_grad are the names
// of the parameters. Arguments may be lists and dictionaries of tensors. At the level "debug" a
// node is a tensor itself.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analyzers/readers/common/json_text.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/peak_table.hpp"
#include "analyzers/readers/statistics/statistics.hpp"

namespace halfscope::analyzers::readers::statistics {
namespace {

namespace fs = std::filesystem;
using common::PeakTable;
using log::printable;
using log::Role;
using Around = std::span<const common::JsonLevel>;

constexpr int kDumpLevels = 2;                 // DUMP_PATH/step0/rank0/dump.json
constexpr std::size_t kNode = 2;               // levels around a node: the dump and its data
constexpr std::size_t kMostTensors = 100'000;  // in a node
constexpr std::size_t kLongestName = 512;      // bytes of a tensor's name

bool is_dump_file(const log::OpenPath& file) {
  const std::string text = common::json_beginning_of(file);
  return text.starts_with('{') &&
         common::has_all(text, {"\"task\"", "\"dump_data_dir\"", "\"data\""});
}

/// Returns the number of the nearest folder above a file with a name such as "step3".
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

bool is_floating(std::string_view dtype) {
  std::string lower(dtype);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find("float") != std::string::npos;
}

Role role_of(std::string_view node, std::string_view section) {
  if (common::has_all(node, {".parameters_grad"})) return Role::weight_grad;
  if (section == "parameters") return Role::weight;
  if (common::has_all(node, {".backward"})) return Role::activation_grad;
  return common::has_all(node, {".forward"}) ? Role::activation : Role::unknown;
}

/// The name of a tensor in msprobe's own form: "Module.conv1.Conv2d.forward.0.input.0".
std::string name_of(Around around) {
  std::string name = around[1].key;
  const bool of_parameters = name.ends_with(".parameters_grad");
  for (std::size_t i = kNode; i < around.size() && name.size() <= kLongestName; ++i) {
    const common::JsonLevel& level = around[i];
    if (level.is_array) {
      if (!of_parameters) name += fmt::format(".{}", level.index);
    } else {
      const bool arguments = i == kNode && level.key.starts_with("input_");
      name += "." + (arguments ? "input" : level.key);
    }
  }
  return name;
}

/// The extremes of a tensor.
struct Range {
  double min = 0, max = 0;

  /// Returns true if the minimum is -inf and the maximum finite, as in an attention mask.
  bool is_mask() const { return std::isinf(min) && std::isfinite(max); }
  bool is_finite() const { return is_mask() || (std::isfinite(max) && std::isfinite(min)); }
  double largest() const {
    if (is_mask()) return std::abs(max);
    if (std::isnan(max) || std::isnan(min)) return std::numeric_limits<double>::quiet_NaN();
    return std::max(std::abs(max), std::abs(min));
  }
  /// The smallest magnitude; empty unless all values are finite, nonzero and of one sign.
  std::optional<double> smallest() const {
    if (!std::isfinite(max) || !std::isfinite(min)) return std::nullopt;
    if (min > 0) return min;
    return max < 0 ? std::optional(-max) : std::nullopt;
  }
};

/// A node with its place in the run.
struct Node {
  std::int64_t step = 0, rank = 0;
  std::uint64_t place = 0;  ///< position among the nodes of its file, from 1
  std::string name = {};
  std::size_t tensors = 0;
  bool has_inputs = false, finite_inputs = true, finite_outputs = true;

  bool before(const Node& other) const {
    return std::tie(step, place, rank) < std::tie(other.step, other.place, other.rank);
  }
};

/// The dumps of all steps and ranks.
class Dumps {
 public:
  void read(const fs::path& file, common::TextFiles& text, PeakTable& peaks) {
    const auto step = folder_number(file, "step");
    without_step_ += step ? 0 : 1;
    node_ = {step.value_or(0), folder_number(file, "rank").value_or(0)};
    text.read_whole(file, [&](std::string_view json) {
      return common::read_json(json, [&](Around around, const common::JsonObject& object) {
        if (around.size() < kNode || around[0].key != "data") return true;
        if (is_floating(object.texts.named("dtype").value_or(""))) take(around, object, peaks);
        if (around.size() == kNode) end_node(around[1].key);
        return true;
      });
    });
  }

  void add_notes(const std::string& log, std::size_t files, frames::Notes& notes) const {
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
  /// Adds a floating-point tensor of the current node.
  void take(Around around, const common::JsonObject& tensor, PeakTable& peaks) {
    const std::string name = name_of(around);
    const auto min = tensor.numbers.named("Min"), max = tensor.numbers.named("Max");
    if (!min || !max || name.size() > kLongestName || node_.tensors == kMostTensors) {
      ++without_values_;
      return;
    }
    ++node_.tensors;
    const Range range{*min, *max};
    const std::string section = around.size() > kNode ? around[kNode].key : "";
    const bool is_output = section == "output";
    masks_ += range.is_mask() ? 1 : 0;
    node_.has_inputs |= !is_output;
    (is_output ? node_.finite_outputs : node_.finite_inputs) &= range.is_finite();
    peaks.add(name, role_of(around[1].key, section), node_.step,
              {{range.largest(), range.largest()}, range.smallest()});
  }

  void end_node(const std::string& name) {
    ++node_.place;
    node_.name = name;
    const bool is_cause = node_.has_inputs && node_.finite_inputs && !node_.finite_outputs;
    if (is_cause && (!first_ || node_.before(*first_))) first_ = node_;
    node_ = {node_.step, node_.rank, node_.place};
  }

  Node node_;                  ///< the current node
  std::optional<Node> first_;  ///< first with finite inputs and NaN or infinite outputs
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
  const auto read = [&](const fs::path& file, common::TextFiles& text, PeakTable& peaks) {
    dumps.read(file, text, peaks);
  };
  common::PeakLog kind = "msprobe dump";
  kind.rounded = false;
  kind.in_order = true;
  kind.has_dtypes = true;  // tensors of other types are skipped
  common::read_peaks(kind, log, files, read, selection, visit, notes, progress);
  dumps.add_notes(printable(log.path.string()), files.size(), notes);
}

}  // namespace halfscope::analyzers::readers::statistics
