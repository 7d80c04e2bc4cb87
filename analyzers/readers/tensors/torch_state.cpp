// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/torch_state.hpp"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

constexpr int kDeepest = 200;

class Walk {
 public:
  Walk(const PickleValues& values, const std::string& alone, std::uint64_t pickle_bytes,
       const std::string& place, const std::string& advice)
      : values_(values),
        alone_(alone),
        left_(8 * pickle_bytes + (std::uint64_t{1} << 16)),
        place_(place),
        advice_(advice) {}

  TorchState run() {
    visit(values_.root, 0);
    return std::move(state_);
  }

 private:
  [[noreturn]] void refuse(std::string_view found) const {
    throw log::BadInput(
        fmt::format("{} holds {}, expected a dictionary of tensors; {}", place_, found, advice_));
  }

  /// Subtracts from the limit of work; throws log::BadInput if it is used up. A hostile pickle can
  /// hold one value in a thousand containers, each again in a thousand containers.
  void pay(std::uint64_t cost) {
    if (cost > left_) refuse("the same values again and again");
    left_ -= cost;
  }

  std::string name() const { return name_.empty() ? alone_ : name_; }

  void visit(ValueId id, int depth) {
    pay(1);
    const PickleValue& value = values_.values[id];
    switch (value.kind) {
      case ValueKind::tensor: return take(value.index);
      case ValueKind::storage: return skip("is a storage without a tensor's shape");
      case ValueKind::opaque: return skip(reason(values_.opaque[value.index]));
      case ValueKind::list:
      case ValueKind::tuple: return visit_list(id, depth + 1);
      case ValueKind::dict: return visit_dict(id, depth + 1);
      default: return;
    }
  }

  void visit_list(ValueId id, int depth) {
    std::uint64_t place = 0;
    for (const ValueId item : values_.items(id)) visit_inside(fmt::to_string(place++), item, depth);
  }

  void visit_dict(ValueId id, int depth) {
    const auto items = values_.items(id);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const PickleValue& key = values_.values[items[i]];
      if (key.kind == ValueKind::text) {
        visit_inside(values_.texts[key.index], items[i + 1], depth);
      } else if (key.kind == ValueKind::integer) {
        visit_inside(fmt::to_string(key.number), items[i + 1], depth);
      } else if (values_.kind(items[i + 1]) != ValueKind::plain) {
        skip("has an item whose key is neither text nor a whole number");
      }
    }
  }

  void visit_inside(std::string_view key, ValueId id, int depth) {
    if (depth > kDeepest) refuse(fmt::format("containers in each other {} deep", depth));
    const ValueKind kind = values_.kind(id);
    if (kind == ValueKind::plain || kind == ValueKind::integer || kind == ValueKind::text) {
      return pay(1);
    }
    const std::size_t length = name_.size();
    pay(length + key.size());
    if (!name_.empty()) name_ += '.';
    name_ += key;
    visit(id, depth);
    name_.resize(length);
  }

  static std::string reason(const OpaqueObject& object) {
    if (object.module.empty()) return std::string(object.name);
    return fmt::format("is a Python object ({}.{}), which is not read",
                       log::printable(object.module.substr(0, 100)),
                       log::printable(object.name.substr(0, 100)));
  }

  void take(std::uint32_t tensor) {
    pay(values_.items(values_.tensors[tensor].shape).size());
    std::string named = name();
    if (names_.insert(named).second) {
      state_.tensors.push_back({std::move(named), tensor});
    } else {
      skip("has the name of another tensor of the file");
    }
  }

  void skip(std::string why) { state_.skipped.push_back({name(), std::move(why)}); }

  const PickleValues& values_;
  const std::string& alone_;
  std::uint64_t left_;
  const std::string& place_;
  const std::string& advice_;
  std::string name_;
  std::unordered_set<std::string> names_;
  TorchState state_;
};

}  // namespace

TorchState torch_state(const PickleValues& values, const std::string& alone,
                       std::uint64_t pickle_bytes, const std::string& place,
                       const std::string& advice) {
  return Walk(values, alone, pickle_bytes, place, advice).run();
}

}  // namespace halfscope::analyzers::readers::tensors
