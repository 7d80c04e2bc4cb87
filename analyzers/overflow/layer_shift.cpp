// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "analyzers/overflow/attention_scores.hpp"
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

/// Returns "Conv" for "Conv2d"; other names are returned unchanged.
std::string_view without_dimensions(std::string_view type) {
  const bool has = type.size() > 2 && type.back() == 'd' && type[type.size() - 2] >= '1' &&
                   type[type.size() - 2] <= '3';
  return has ? type.substr(0, type.size() - 2) : type;
}

/// Returns true if a class is one of these words.
bool is_one_of(std::string_view words, std::string_view type) {
  const std::string word = " " + std::string(without_dimensions(type)) + " ";
  return !type.empty() && words.find(word) != std::string_view::npos;
}

bool is_within(std::string_view module, std::string_view container) {
  return container.empty() ||
         (module.starts_with(container) &&
          (module.size() == container.size() || module[container.size()] == '.'));
}

std::string_view parent(std::string_view module) {
  const std::size_t dot = module.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : module.substr(0, dot);
}

/// Returns true if every container of a module up to and including `top` is a Sequential.
bool in_sequentials(const underflow::Modules& modules, std::string_view module,
                    std::string_view top) {
  while (module != top) {
    module = parent(module);
    if (modules.class_of(std::string(module)) != "Sequential") return false;
  }
  return true;
}

/// Returns true if f(a x) = a f(x) for every a > 0: ReLU, pooling, dropout...
bool commutes(std::string_view type) {
  return is_one_of(
      " ReLU LeakyReLU PReLU RReLU MaxPool AvgPool AdaptiveMaxPool AdaptiveAvgPool MaxUnpool "
      "FractionalMaxPool Dropout FeatureDropout Flatten Unflatten Identity PixelShuffle "
      "PixelUnshuffle ChannelShuffle Upsample UpsamplingNearest UpsamplingBilinear ZeroPad "
      "ReflectionPad ReplicationPad CircularPad Unfold ",
      type);
}

/// Returns true for W x + b: a factor of x can be moved into W.
bool is_linear(std::string_view type) {
  // Conv1D is Hugging Face's linear layer of GPT-2; without_dimensions() does not shorten it.
  return is_one_of(" Linear Conv ConvTranspose Conv1D ", type);
}

/// Returns true if the output is linear in weight and bias: is_linear(), and normalisations.
bool scales_output(std::string_view type) {
  return is_linear(type) || is_one_of(
                                " BatchNorm SyncBatchNorm InstanceNorm LayerNorm GroupNorm "
                                "RMSNorm Embedding ",
                                type);
}

/// Returns true if all layers between two commute, by their positions in the network's text. Empty
/// unless both are in one torch.nn.Sequential, in this order, adjacent or not.
std::optional<bool> commute_in_sequence(const underflow::Modules& modules, std::string_view layer,
                                        std::string_view next) {
  const auto& order = modules.with_class();
  const auto first = std::ranges::find(order, layer);
  const auto last = std::find(first, order.end(), next);
  if (last == order.end()) return std::nullopt;
  std::string_view top = parent(layer);
  while (!is_within(next, top)) top = parent(top);
  if (!in_sequentials(modules, layer, top) || !in_sequentials(modules, next, top)) {
    return std::nullopt;
  }
  return std::all_of(std::next(first), last, [&](const std::string& between) {
    const std::string_view type = modules.class_of(between);
    return type == "Sequential" || commutes(type);
  });
}

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
    const std::optional<bool> commutes = commute_in_sequence(modules_, shift.layer, shift.next);
    if (commutes == false) return std::nullopt;
    shift.in_sequence = commutes.has_value();
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
