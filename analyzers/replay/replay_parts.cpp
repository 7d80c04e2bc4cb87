// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/replay_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzers/underflow/computation_order.hpp"
#include "analyzers/underflow/modules.hpp"

namespace halfscope::analyzers::replay {
namespace {

using log::Role;

/// The largest unscaled magnitudes of one tensor, one per step.
struct Magnitudes {
  std::string name;
  std::vector<double> values;
};

/// Returns the missing record; empty if all ranks that may hold different values have the tensor.
std::string missing_rank(const TensorSeries& tensor, const TensorFacts& facts) {
  if (facts.ranks >= tensor.ranks) return {};
  return fmt::format(
      "needs the largest magnitude of every gradient tensor at every step on every rank; {} has "
      "those of {} of {} ranks at step {}: give the folder that holds all ranks",
      log::printable(tensor.name), facts.ranks, tensor.ranks, facts.step);
}

/// Returns the magnitudes of the gradients that FP8 training casts: activation gradients, or else
/// weight gradients. Sets `missing` if a record is missing.
std::vector<Magnitudes> magnitudes_of(const StepSeries& series, std::string& missing) {
  std::vector<Magnitudes> all;
  if (series.from_magnitudes) {
    all.push_back({});
    for (const AttemptMagnitudes& seen : series.seen) all[0].values.push_back(seen.max_abs);
    return all;
  }
  const auto of = [&](Role role) {
    for (const TensorSeries& tensor : series.tensors) {
      if (tensor.role != role) continue;
      all.push_back({tensor.name, {}});
      for (const TensorFacts& facts : tensor.steps) all.back().values.push_back(facts.max_abs);
      for (std::size_t i = 0; i < series.steps.size() && missing.empty(); ++i) {
        if (i < tensor.steps.size() && tensor.steps[i].step == series.steps[i]) {
          missing = missing_rank(tensor, tensor.steps[i]);
          continue;
        }
        missing = fmt::format(
            "needs the largest magnitude of every gradient tensor at every step; {} has none at "
            "step {}: record histograms at every step",
            log::printable(tensor.name), series.steps[i]);
      }
    }
  };
  of(Role::activation_grad);
  if (all.empty()) of(Role::weight_grad);
  if (all.empty()) {
    missing =
        "needs the largest magnitude of every gradient tensor at every step, and the log has no "
        "histograms of gradients: record them at every step";
  }
  return all;
}

/// Merges two sorted lists without duplicates.
void merge(std::vector<std::int64_t>& sum, const std::vector<std::int64_t>& more) {
  std::vector<std::int64_t> both;
  std::set_union(sum.begin(), sum.end(), more.begin(), more.end(), std::back_inserter(both));
  sum = std::move(both);
}

/// Returns the smallest of all scales at every step.
ScaleRuns smallest(const std::vector<std::pair<std::string, ScaleRuns>>& parts,
                   std::size_t length) {
  std::vector<std::size_t> next(parts.size(), 0);
  ScaleRuns runs;
  for (std::size_t i = 0; i < length; ++i) {
    double least = INFINITY;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const ScaleRuns& of = parts[p].second;
      if (next[p] + 1 < of.size() && of[next[p] + 1].first <= i) ++next[p];
      least = std::min(least, of[next[p]].second);
    }
    add_scale(runs, i, least);
  }
  return runs;
}

}  // namespace

void replay_tensors(const policy::TeDelayed& policy, const StepSeries& series, Trace& trace) {
  const std::vector<Magnitudes> tensors = magnitudes_of(series, trace.unavailable);
  if (!trace.unavailable.empty()) return;
  const Format format = policy.fp8_format == "E4M3" ? kFloat8E4M3 : kFloat8E5M2;
  const double limit = to_double(boundaries(format).overflow);
  trace.length = series.steps.size();
  trace.final_scale = INFINITY;
  for (const Magnitudes& tensor : tensors) {
    policy::TeDelayed own = policy;
    ScaleRuns runs;
    std::vector<std::int64_t> saturated, nonfinite;
    for (std::size_t i = 0; i < trace.length; ++i) {
      const double max_abs = tensor.values[i];
      add_scale(runs, i, own.scale());
      if (!std::isfinite(max_abs)) nonfinite.push_back(series.steps[i]);
      if (!std::isfinite(max_abs) || reaches(max_abs, own.scale(), limit)) {
        saturated.push_back(series.steps[i]);
      }
      own.advance({.nonfinite = !std::isfinite(max_abs), .max_abs = max_abs});
    }
    merge(trace.overflow, saturated);
    merge(trace.applied_nonfinite, nonfinite);
    trace.final_scale = std::min(trace.final_scale, own.scale());
    trace.parts.emplace_back(tensor.name, std::move(runs));
  }
  trace.scale = smallest(trace.parts, trace.length);
  if (series.from_magnitudes) trace.parts.clear();
}

namespace {

/// A layer: the gradient of its output, and its weight.
struct Layer {
  const TensorSeries* gradient = nullptr;
  const TensorSeries* weight = nullptr;
  std::size_t at_gradient = 0, at_weight = 0;  ///< indices of the recorded steps in use
  policy::Als policy;
  ScaleRuns scale;  ///< accumulated scale
};

/// Advances `at` to the last recorded step up to `step`, or to the first one, and returns its
/// facts. Infinities and NaN apply to their own step only.
const TensorFacts& facts_at(const TensorSeries& tensor, std::size_t& at, std::int64_t step) {
  const auto holds = [&](const TensorFacts& facts) {
    return facts.step == step || std::isfinite(facts.max_abs);
  };
  for (std::size_t i = at + 1; i < tensor.steps.size(); ++i) {
    if (tensor.steps[i].step > step && holds(tensor.steps[at])) break;
    if (holds(tensor.steps[i])) at = i;
  }
  return tensor.steps[at];
}

/// Returns the number of products per element of the input's gradient: outputs times kernel size.
std::uint64_t fan_in_of(const std::vector<std::uint64_t>& shape) {
  std::uint64_t fan_in = shape.empty() ? 1 : shape[0];
  for (std::size_t i = 2; i < shape.size(); ++i) fan_in *= shape[i];
  return std::max<std::uint64_t>(1, fan_in);
}

/// Returns the weight of the module whose output has this gradient: a matrix or a kernel, not a
/// bias. Null if there is none.
const TensorSeries* weight_of(const StepSeries& series, std::string_view module) {
  for (const TensorSeries& tensor : series.tensors) {
    if (tensor.role != Role::weight || tensor.shape.size() < 2 || tensor.steps.empty()) continue;
    const std::string_view path = underflow::path_of(std::string_view(tensor.name));
    const std::size_t dot = path.rfind('.');
    if (dot != std::string_view::npos && path.substr(0, dot) == module) return &tensor;
  }
  return nullptr;
}

/// Returns the layers in the order of the backward pass.
std::vector<Layer> layers_of(const policy::Als& policy, const StepSeries& series,
                             std::string& missing) {
  underflow::LogFindings names;  // the order depends on names and roles only
  for (const TensorSeries& tensor : series.tensors) {
    names.tensors.emplace_back();
    names.tensors.back().name = tensor.name;
    names.tensors.back().role = tensor.role;
  }
  std::vector<Layer> layers;
  bool any_weight = false, moments = true;
  const underflow::ComputationOrder order(names);
  for (const std::size_t i : order.tensors()) {
    const TensorSeries& gradient = series.tensors[i];
    if (gradient.role != Role::activation_grad || gradient.steps.empty()) continue;
    Layer layer;
    layer.gradient = &gradient;
    layer.weight = weight_of(series, underflow::path_of(std::string_view(gradient.name)));
    layer.policy = policy;
    any_weight = any_weight || layer.weight != nullptr;
    moments =
        moments && gradient.has_moments && (layer.weight == nullptr || layer.weight->has_moments);
    layers.push_back(std::move(layer));
  }
  if (layers.empty() || !any_weight || !moments) {
    const std::string_view has = series.from_magnitudes ? "a plain series of magnitudes has none"
                                 : layers.empty() ? "the log has no histograms of activation_grad"
                                 : !moments       ? "some of the log's histograms have no moments"
                                                  : "the log has no weights of these layers";
    missing = fmt::format(
        "needs the mean, standard deviation and largest magnitude of every layer's weight and of "
        "its output's gradient; {}: record activation_grad and weight",
        has);
  }
  return layers;
}

policy::LayerFacts facts_of(Layer& layer, std::int64_t step, double previous) {
  const TensorFacts& gradient = facts_at(*layer.gradient, layer.at_gradient, step);
  policy::LayerFacts facts;
  facts.previous_scale = previous;
  facts.grad_mean = gradient.mean * previous;
  facts.grad_std = gradient.deviation * previous;
  facts.grad_max_abs = gradient.max_abs * previous;
  facts.has_weight = layer.weight != nullptr;
  if (!facts.has_weight) return facts;
  const TensorFacts& weight = facts_at(*layer.weight, layer.at_weight, step);
  facts.weight_mean = weight.mean;
  facts.weight_std = weight.deviation;
  facts.weight_max_abs = weight.max_abs;
  facts.fan_in = fan_in_of(layer.weight->shape);
  return facts;
}

/// Returns true if every layer's gradient has a histogram of this step.
bool has_tables(std::vector<Layer>& layers, std::int64_t step) {
  return std::all_of(layers.begin(), layers.end(), [&](Layer& layer) {
    return facts_at(*layer.gradient, layer.at_gradient, step).step == step;
  });
}

/// Returns the verdict on a step at the layers' present scales; a gradient may have any of them.
/// Larger finite gradients than in histograms would have had other scales; their overflow is
/// unknown.
OverflowVerdict of_step(const std::vector<Layer>& layers, const AttemptMagnitudes& seen) {
  double accumulated = 1, smallest = INFINITY, largest = 1;
  for (const Layer& layer : layers) {
    accumulated *= layer.policy.scale();
    smallest = std::min(smallest, accumulated);
    largest = std::max(largest, accumulated);
  }
  if (judge(seen, largest) == OverflowVerdict::clean) return OverflowVerdict::clean;
  const bool sure =
      !std::isfinite(seen.max_abs) && judge(seen, smallest) == OverflowVerdict::overflow;
  return sure ? OverflowVerdict::overflow : OverflowVerdict::unknown;
}

void keep_scales(std::vector<Layer>& layers, std::size_t index, Trace& trace) {
  double accumulated = 1;
  for (Layer& layer : layers) add_scale(layer.scale, index, accumulated *= layer.policy.scale());
  add_scale(trace.scale, index, accumulated);
  trace.final_scale = accumulated;
}

}  // namespace

void replay_layers(const policy::Als& policy, const StepSeries& series, Trace& trace) {
  std::vector<Layer> layers = layers_of(policy, series, trace.unavailable);
  if (!trace.unavailable.empty()) return;
  for (std::size_t i = 0; i < series.steps.size() && !trace.error; ++i) {
    const std::int64_t step = series.steps[i];
    double accumulated = 1;
    bool overflow = false, infinite_step = false;
    const AttemptMagnitudes& seen = series.seen[i];
    if (!std::isfinite(seen.max_abs) || seen.partial || !has_tables(layers, step)) {
      const OverflowVerdict verdict = of_step(layers, seen);
      if (verdict == OverflowVerdict::unknown) {  // the layers receive nothing: see step_once()
        trace.unknown.push_back(step);
        trace.length = i + 1;
        keep_scales(layers, i, trace);
        continue;
      }
      overflow = infinite_step = verdict == OverflowVerdict::overflow;
    }
    for (Layer& layer : layers) {
      policy::LayerFacts facts = facts_of(layer, step, accumulated);
      if (infinite_step) facts.grad_max_abs = INFINITY;
      const bool infinite = !std::isfinite(facts.grad_max_abs);
      overflow = overflow || infinite || facts.grad_max_abs >= kOverflow;
      const policy::Decision decision = layer.policy.advance(
          {.nonfinite = infinite, .max_abs = facts.grad_max_abs, .layer = &facts});
      if (!decision.error.empty() && !trace.error) {
        trace.error = TraceError{std::string(decision.error), step};
      }
      accumulated *= layer.policy.scale();
      add_scale(layer.scale, i, accumulated);
    }
    add_scale(trace.scale, i, accumulated);
    trace.final_scale = accumulated;
    trace.length = i + 1;
    if (overflow) trace.overflow.push_back(step);
    if (overflow && !trace.error) trace.applied_nonfinite.push_back(step);
  }
  if (trace.error) trace.outcome = TraceOutcome::error;
  for (Layer& layer : layers) trace.parts.emplace_back(layer.gradient->name, layer.scale);
}

}  // namespace halfscope::analyzers::replay
