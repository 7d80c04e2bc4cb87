// SPDX-License-Identifier: Apache-2.0
// By msprobe/core/data_dump and docs/en/dump: {"task", "level", "framework", "dump_data_dir",
// "data": {NODE: {SECTION: [TENSOR, ..]}}}. Nodes are "Module.conv1.Conv2d.forward.0",
// "Functional.relu.0.backward" or "Module.conv1.Conv2d.parameters_grad"; sections input_args,
// input_kwargs, parameters and output of a forward pass, input and output of a backward pass, and
// of parameters_grad the names of the parameters. Arguments may be lists and dictionaries of
// tensors. At the level "debug" a node is a tensor itself.
#include "analyzers/readers/statistics/msprobe_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "analyzers/readers/common/text_lines.hpp"

namespace halfscope::analyzers::readers::statistics {
namespace {

using log::Role;

constexpr std::size_t kNode = 2;  // open above what a node holds: the dump, its data

bool is_floating(std::string_view dtype) {
  std::string lower(dtype);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find("float") != std::string::npos;
}

Role role_of(std::string_view node, std::string_view section) {
  const auto has = [&](std::string_view word) { return node.find(word) != std::string_view::npos; };
  if (has(".parameters_grad")) return Role::weight_grad;
  if (section == "parameters") return Role::weight;
  if (has(".backward")) return Role::activation_grad;
  return has(".forward") ? Role::activation : Role::unknown;
}

}  // namespace

void NodeReader::open(bool is_array) {
  if (skipped_ > 0 || open_.size() == kDeepest) {
    ++skipped_;
    return;
  }
  open_.push_back({is_array, {}, 0, {}, {}, {}});
}

std::optional<NodeReader::Level> NodeReader::close() {
  if (skipped_ > 0) {
    if (--skipped_ == 0) count_value();
    return std::nullopt;
  }
  Level closed = std::move(open_.back());
  open_.pop_back();
  return closed;
}

void NodeReader::count_value() {
  if (Level* const in = level(); in != nullptr && in->is_array) ++in->index;
}

void NodeReader::key(const std::string& name) {
  if (Level* const in = level()) in->key = name.substr(0, kLongestName + 1);
}

void NodeReader::number(double value) {
  Level* const in = level();
  if (in == nullptr) return;
  count_value();
  if (in->is_array) return;
  if (in->key == "Max") in->max = value;
  if (in->key == "Min") in->min = value;
}

void NodeReader::text(const std::string& value) {
  Level* const in = level();
  if (in != nullptr && !in->is_array && in->key == "dtype") {
    in->dtype = value.substr(0, kLongestName);
  } else if (const auto found = common::number_in(value)) {
    number(*found);
  } else {
    count_value();
  }
}

void NodeReader::end_array() {
  if (close()) count_value();
}

void NodeReader::end_object() {
  const auto closed = close();
  if (!closed) return;
  const bool of_node = open_.size() >= kNode && open_.front().key == "data";
  if (of_node && is_floating(closed->dtype)) take_tensor(*closed);
  if (of_node && open_.size() == kNode) {
    node_.name = open_[1].key;
    visit_(node_);
    node_ = {};
  }
  count_value();
}

std::string_view NodeReader::section() const {
  return open_.size() > kNode ? std::string_view(open_[kNode].key) : std::string_view();
}

/// "Module.conv1.Conv2d.forward.0.input.0", as msprobe names it.
std::string NodeReader::name_of_place() const {
  std::string name = open_[1].key;
  const bool of_parameters = name.ends_with(".parameters_grad");
  for (std::size_t i = kNode; i < open_.size() && name.size() <= kLongestName; ++i) {
    const Level& level = open_[i];
    if (level.is_array) {
      if (!of_parameters) name += fmt::format(".{}", level.index);
    } else {
      const bool arguments = i == kNode && level.key.starts_with("input_");
      name += "." + (arguments ? "input" : level.key);
    }
  }
  return name;
}

void NodeReader::take_tensor(const Level& tensor) {
  NodeTensor found;
  found.name = name_of_place();
  const bool usable = tensor.max && tensor.min && found.name.size() <= kLongestName;
  if (!usable || node_.tensors.size() >= kMostTensors) {
    ++node_.without_values;
    return;
  }
  found.role = role_of(open_[1].key, section());
  found.is_output = section() == "output";
  found.max = *tensor.max;
  found.min = *tensor.min;
  node_.tensors.push_back(std::move(found));
}

}  // namespace halfscope::analyzers::readers::statistics
