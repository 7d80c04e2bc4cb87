// SPDX-License-Identifier: Apache-2.0
// A separate scale for each layer, for networks that no single scale serves.
#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <map>
#include <numeric>

#include "analyzers/recommend/parts.hpp"
#include "analyzers/underflow/modules.hpp"

namespace halfscope::analyzers::recommend {

using underflow::TensorFindings;

namespace {

using log::Role;

/// The tensors of one layer in the log.
struct Layer {
  std::string log, name;
  Tensors gradients;                       ///< tensors that a loss scale acts on
  const TensorFindings* weight = nullptr;  ///< with two dimensions or more
  const TensorFindings* activation_grad = nullptr;
};

/// Returns the layers in the order of their first gradient.
std::vector<Layer> layers_of(const underflow::Analysis& analysis) {
  std::vector<Layer> layers;
  for (const underflow::LogFindings& log : analysis.logs) {
    const underflow::Modules modules(log);
    std::map<std::string, std::size_t> index;
    for (const TensorFindings& t : log.tensors) {
      const bool weight = t.role == Role::weight && t.shape.size() >= 2;
      if (!t.loss_scaled && !weight) continue;
      const std::string name = modules.of(t);
      const auto [at, is_new] = index.try_emplace(name, layers.size());
      if (is_new) layers.push_back({log.name, name, {}, nullptr, nullptr});
      Layer& layer = layers[at->second];
      if (t.loss_scaled) layer.gradients.push_back(&t);
      if (t.role == Role::activation_grad) layer.activation_grad = &t;
      if (weight) layer.weight = &t;
    }
  }
  std::erase_if(layers, [](const Layer& layer) { return layer.gradients.empty(); });
  return layers;
}

/// Mean square and largest magnitude of a tensor's last step, unscaled.
struct Statistics {
  double mean_square = 0, max_abs = 0;
};

std::optional<Statistics> statistics_of(const TensorFindings* t) {
  if (t == nullptr || t->per_step.empty()) return std::nullopt;
  const underflow::StepFindings& last = t->per_step.back();
  const std::uint64_t n = last.counts.zero.low + last.counts.finite_nonzero.low;
  if (!last.moments || n == 0 || !last.max_abs) return std::nullopt;
  return Statistics{last.moments->sum_squares / (last.scale * last.scale) / static_cast<double>(n),
                    *last.max_abs};
}

/// Returns the factor of adaptive loss scaling for the gradient that a layer passes on, from
/// statistics of its weight and of the gradient it receives (Zhao et al., arXiv 1910.12385; bounds
/// and target share as in the authors' code). A power of two, at most 16. Empty without statistics.
std::optional<double> adaptive_factor(const Layer& layer) {
  constexpr double kSmallest = 6.0e-8, kLargest = 65504, kShare = 1e-3, kMost = 16;
  const auto gradient = statistics_of(layer.activation_grad), weight = statistics_of(layer.weight);
  if (!gradient || !weight) return std::nullopt;
  const std::vector<std::uint64_t>& shape = layer.weight->shape;  // [out, in, kernel...]
  const double fan_in =
      std::accumulate(shape.begin() + 2, shape.end(), static_cast<double>(shape[0]),
                      [](double a, std::uint64_t b) { return a * static_cast<double>(b); });
  // Deviation of a product of independent values, summed over half of the fan: ReLU passes half.
  const double deviation = std::sqrt(gradient->mean_square * weight->mean_square * 0.5 * fan_in);
  if (deviation == 0) return 1.0;
  const double z = std::sqrt(2.0) * boost::math::erf_inv(kShare);
  double scale = std::max(kSmallest / (z * deviation), 1.0);
  scale = std::min({scale, kLargest / fan_in / (gradient->max_abs * weight->max_abs), kMost});
  return std::exp2(std::floor(std::log2(scale)));
}

Interval flushed_in(const Tensors& tensors, const underflow::Target& target, int k) {
  Interval sum = 0;
  for (const TensorFindings* t : tensors) {
    sum += t->classes_at(target, k).flushed_to_zero;
  }
  return sum;
}

}  // namespace

std::vector<LayerScale> per_layer(const Basis& basis, const Recommendation& advice) {
  const underflow::Analysis& analysis = basis.analysis;
  std::vector<LayerScale> scales;
  if (!advice.static_log2 || advice.above_target.empty()) return scales;  // one scale serves all
  if (advice.underflow_not_identifiable) return scales;  // no layer's lowest scale is known either
  for (const Layer& layer : layers_of(analysis)) {
    const ScaleRange range = scale_range(basis, advice.peaks, layer.gradients);
    LayerScale scale;
    scale.layer = layer.name;
    if (analysis.logs.size() > 1) scale.layer = layer.log + ": " + layer.name;
    scale.lowest_log2 = range.lowest_log2;
    scale.highest_log2 = range.highest_log2;
    for (const TensorFindings* t : layer.gradients) scale.of += t->counts.finite_nonzero;
    scale.flushed_at_static = flushed_in(layer.gradients, analysis.target, *advice.static_log2);
    scale.flushed_at_own = flushed_in(layer.gradients, analysis.target,
                                      range.highest_log2.value_or(*advice.static_log2));
    scale.als = adaptive_factor(layer);
    scales.push_back(std::move(scale));
  }
  return scales;
}

}  // namespace halfscope::analyzers::recommend
