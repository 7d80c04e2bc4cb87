// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/layer_shift.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analyzers/overflow/attention_scores.hpp"
#include "analyzers/overflow/layer_classes.hpp"
#include "analyzers/underflow/computation_order.hpp"
#include "analyzers/underflow/modules.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::overflow {

using log::Role;
using underflow::LogFindings;
using underflow::StepFindings;
using underflow::StepMagnitude;
using underflow::TensorFindings;

namespace {

/// A module with its activation and its weights.
struct Layer {
  std::string path;
  std::string_view type;  ///< its class; empty if the log lacks it
  const TensorFindings* activation = nullptr;
  std::vector<const TensorFindings*> weights;  ///< weights and biases

  /// Returns true if weights scale the output. PReLU's weight is a slope: it commutes.
  bool has_factor() const { return !weights.empty() && !commutes(type); }
};

std::string_view parameter_of(const TensorFindings& weight) {
  return std::string_view(weight.name).substr(weight.name.find_last_of("./") + 1);
}

/// Returns the modules of one log in the order of computation.
std::vector<Layer> layers_of(const LogFindings& log, const underflow::Modules& modules) {
  const underflow::ComputationOrder order(log);
  std::map<std::size_t, Layer> layers;
  std::set<std::string_view> with_weight;  // paths whose master weights are ignored
  for (const std::size_t i : order.tensors()) {
    const TensorFindings& t = log.tensors[i];
    const bool weight = t.role == Role::weight || t.role == Role::master_weight;
    const auto place = order.place_of(i);
    if (!place || (!weight && t.role != Role::activation)) continue;
    Layer& layer = layers[*place];
    layer.path = modules.of(t);
    if (!weight) {
      layer.activation = &t;
    } else if (t.role == Role::weight || !with_weight.contains(underflow::path_of(t))) {
      layer.weights.push_back(&t);
      with_weight.insert(underflow::path_of(t));
    }
  }
  std::vector<Layer> all;
  for (auto& [place, layer] : layers) {
    layer.type = modules.class_of(layer.path);
    all.push_back(std::move(layer));
  }
  return all;
}

bool finite_at(const Layer& layer, std::int64_t step) {
  return std::ranges::none_of(layer.weights, [&](const TensorFindings* weight) {
    const auto found = weight->per_step.find(step);
    return found && underflow::nonfinite(*found);
  });
}

/// An overflow in what one layer computes, up to the next layer with weights.
struct Overflow {
  const TensorFindings* activation = nullptr;
  StepMagnitude largest;
};

/// Finds the shifts between a log's layers.
class Walk {
 public:
  explicit Walk(const LogFindings& log)
      : modules_(log), layers_(layers_of(log, modules_)), log_(log) {}

  std::vector<LayerShift> find(const underflow::Target& target) const {
    std::vector<LayerShift> all;
    for (const auto& [at, overflow] : overflows()) {
      if (auto shift = shift_of(at, overflow, target)) all.push_back(std::move(*shift));
    }
    return all;
  }

 private:
  /// Returns the overflows by the index of the layer with weights.
  std::map<std::size_t, Overflow> overflows() const {
    std::map<std::size_t, Overflow> found;
    std::set<std::int64_t> broken;  // later values of such a step are a consequence
    std::optional<std::size_t> owner;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (layers_[i].has_factor()) owner = i;
      if (layers_[i].activation == nullptr) continue;
      for (const StepFindings& step : layers_[i].activation->per_step) {
        if (broken.contains(step.step)) continue;
        if (underflow::nonfinite(step)) broken.insert(step.step);
        const auto largest = overflow_of(i, owner, step);
        if (!largest) continue;
        const Overflow overflow{layers_[i].activation, *largest};
        const auto [at, is_new] = found.try_emplace(*owner, overflow);
        if (is_new || largest->log2() > at->second.largest.log2()) at->second = overflow;
      }
    }
    return found;
  }

  /// Returns an activation's largest magnitude at a step if it overflows at loss scale 1.
  std::optional<StepMagnitude> overflow_of(std::size_t at, std::optional<std::size_t> owner,
                                           const StepFindings& step) const {
    if (!owner || step.counts.nan.high > 0 || !finite_at(layers_[*owner], step.step)) {
      return std::nullopt;
    }
    if (step.counts.inf.low > 0) {
      if (!layers_[at].activation->computed_in_fp16()) return std::nullopt;
      return underflow::infinite_magnitude(1.0);
    }
    return step.overflow_at_1.low > 0 ? underflow::finite_magnitude(step) : std::nullopt;
  }

  /// Returns the layer that reads this layer's output, if a factor can be moved into it.
  std::optional<std::size_t> next_of(std::size_t layer) const {
    for (std::size_t i = layer + 1; i < layers_.size(); ++i) {
      if (!layers_[i].has_factor()) {
        if (!layers_[i].type.empty() && !commutes(layers_[i].type)) return std::nullopt;
        continue;
      }
      const bool known = layers_[i].activation != nullptr;  // else its position is a guess
      return known && takes_factor(layers_[i]) ? std::optional(i) : std::nullopt;
    }
    return std::nullopt;
  }

  static bool of_weight_and_bias(const Layer& layer) {
    return std::ranges::all_of(layer.weights, [](const TensorFindings* weight) {
      return parameter_of(*weight) == "weight" || parameter_of(*weight) == "bias";
    });
  }
  static const TensorFindings* weight_of(const Layer& layer) {
    const auto found = std::ranges::find(layer.weights, std::string_view("weight"),
                                         [](const TensorFindings* w) { return parameter_of(*w); });
    return found == layer.weights.end() ? nullptr : *found;
  }
  /// Queries, keys and values read the same input. A query is multiplied by a key, so the next
  /// layer in the order does not read it.
  static bool is_of_scores(const Layer& layer) { return is_query_or_key(layer.path); }
  /// For layers without a class: a matrix, or a convolution's kernel.
  static bool is_matrix(const Layer& layer) {
    const TensorFindings* const weight = weight_of(layer);
    return weight != nullptr && weight->shape.size() >= 2;
  }
  static bool takes_factor(const Layer& layer) {
    if (!of_weight_and_bias(layer) || weight_of(layer) == nullptr || is_of_scores(layer)) {
      return false;
    }
    return layer.type.empty() ? is_matrix(layer) : is_linear(layer.type);
  }
  static bool gives_factor(const Layer& layer) {
    if (!of_weight_and_bias(layer) || is_of_scores(layer)) return false;
    return layer.type.empty() ? is_matrix(layer) : scales_output(layer.type);
  }

  std::optional<LayerShift> shift_of(std::size_t at, const Overflow& overflow,
                                     const underflow::Target& target) const {
    const auto next = next_of(at);
    if (!next || !gives_factor(layers_[at])) return std::nullopt;
    LayerShift shift;
    shift.log = log_.name;
    shift.activation = overflow.activation->name;
    shift.max_abs = overflow.largest.unscaled();
    shift.censored = overflow.largest.censored;
    shift.layer = layers_[at].path;
    shift.next = layers_[*next].path;
    shift.log2 = 1 - overflow.largest.highest_safe_log2(target.format);
    if (shift.log2 <= 0) return std::nullopt;  // the format holds what FP16 did not
    if (!add_weights(at, *next, target, shift)) return std::nullopt;
    for (std::size_t i = at + 1; i < *next; ++i) {
      if (layers_[i].type.empty()) shift.between.push_back(layers_[i].path);
    }
    const Sequence sequence(modules_, shift.layer, shift.next);
    shift.in_sequence = sequence.is_one();
    if (sequence.is_one() && !sequence.commutes_between()) return std::nullopt;
    return shift;
  }

  /// Fills in the shift's counts. Returns false if the next layer's weights would overflow.
  bool add_weights(std::size_t at, std::size_t next, const underflow::Target& target,
                   LayerShift& shift) const {
    const TensorFindings& taking = *weight_of(layers_[next]);
    const bool holds = taking.classes_at(target, shift.log2).overflow.high == 0 &&
                       taking.counts.inf.high == 0 && taking.counts.nan.high == 0;
    if (!holds || !taking.max_abs) return false;
    shift.next_max_abs = std::ldexp(*taking.max_abs, shift.log2);
    for (const TensorFindings* weight : layers_[at].weights) {
      const Classes before = weight->classes_at(target, 0);
      const Classes after = weight->classes_at(target, -shift.log2);
      shift.flushed += without(after.flushed_to_zero, before.flushed_to_zero);
      shift.subnormal += after.subnormal;
      shift.of += weight->counts.finite_nonzero;
    }
    return true;
  }

  const underflow::Modules modules_;
  const std::vector<Layer> layers_;
  const LogFindings& log_;
};

/// Most logs have no overflow, so the order of computation is not needed for them.
bool any_overflow(const LogFindings& log) {
  return std::ranges::any_of(log.tensors, [](const TensorFindings& t) {
    return t.role == Role::activation && std::ranges::any_of(t.per_step, [](const auto& step) {
             return step.counts.inf.low > 0 || step.overflow_at_1.low > 0;
           });
  });
}

}  // namespace

std::vector<LayerShift> layer_shifts(const underflow::Analysis& analysis) {
  std::vector<LayerShift> all;
  for (const LogFindings& log : analysis.logs) {
    if (!any_overflow(log)) continue;
    for (LayerShift& shift : Walk(log).find(analysis.target)) all.push_back(std::move(shift));
  }
  return all;
}

}  // namespace halfscope::analyzers::overflow
