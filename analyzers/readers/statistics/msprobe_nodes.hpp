// SPDX-License-Identifier: Apache-2.0
// The nodes of msprobe's dump.json, one by one, in the order in which they ran.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/readers/common/json_text.hpp"
#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::readers::statistics {

/// A tensor of a node.
struct NodeTensor {
  std::string name;  ///< "Module.conv1.Conv2d.forward.0.output.0"
  log::Role role = log::Role::unknown;
  bool is_output = false;
  double max = 0, min = 0;
};

/// A module or an operation, forward or backward, or the gradients of a module's parameters.
struct Node {
  std::string name;
  std::vector<NodeTensor> tensors;   ///< floating-point ones with statistics
  std::uint64_t without_values = 0;  ///< floating-point ones without extremes, or with a name
                                     ///< of more than 512 characters
};

/// Hands on the nodes of a dump.
class NodeReader : public common::JsonEvents {
 public:
  explicit NodeReader(std::function<void(const Node&)> visit) : visit_(std::move(visit)) {}

  void start_object() override { open(false); }
  void start_array() override { open(true); }
  void key(const std::string& name) override;
  void end_object() override;
  void end_array() override;
  void number(double value) override;
  void text(const std::string& value) override;
  void null() override { count_value(); }

 private:
  static constexpr std::size_t kDeepest = 24;
  static constexpr std::size_t kMostTensors = 100'000;  // of a node
  static constexpr std::size_t kLongestName = 512;
  /// An object or array that is open.
  struct Level {
    bool is_array = false;
    std::string key;        ///< of the value that comes
    std::size_t index = 0;  ///< in an array
    std::string dtype;
    std::optional<double> max, min;
  };
  void open(bool is_array);
  /// Empty of what lies too deep.
  std::optional<Level> close();
  void count_value();
  Level* level() { return skipped_ > 0 || open_.empty() ? nullptr : &open_.back(); }
  void take_tensor(const Level& tensor);
  std::string name_of_place() const;
  std::string_view section() const;

  std::function<void(const Node&)> visit_;
  std::vector<Level> open_;
  std::uint64_t skipped_ = 0;  // levels below the deepest
  Node node_;
};

}  // namespace halfscope::analyzers::readers::statistics
