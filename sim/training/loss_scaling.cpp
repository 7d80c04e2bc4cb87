// SPDX-License-Identifier: Apache-2.0
#include "sim/training/loss_scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "halfscope/log/error.hpp"

namespace halfscope::sim::training {

using backend::Tensor;

namespace {

/// Returns the number of products summed for one element of the input's gradient: outputs times the
/// kernel's size. A weight is (K, C), or (K, R, S, C) for a convolution.
std::uint64_t fan_in(const backend::Shape& weight) {
  std::int64_t products = weight.empty() ? 1 : weight.front();
  for (std::size_t i = 1; i + 1 < weight.size(); ++i) products *= weight[i];
  return static_cast<std::uint64_t>(std::max<std::int64_t>(1, products));
}

struct Spread {
  double mean = 0, deviation = 0;  ///< population deviation of the finite values
  double max_abs = 0;              ///< infinity if any value is infinite or NaN
};

/// Returns the statistics of the unscaled values.
Spread spread_of(backend::Backend& backend, const Tensor& tensor, double scale) {
  Spread spread;
  const backend::GradientFacts facts = backend.facts(std::span(&tensor, 1));
  spread.max_abs = facts.nonfinite ? INFINITY : facts.max_abs / scale;
  if (facts.nonfinite || tensor.size() == 0) return spread;  // the policy ends the run
  const Moments moments = backend.moments(tensor);
  spread.mean = moments.mean / scale;
  const double square = moments.sum_squares / static_cast<double>(tensor.size()) / scale / scale;
  spread.deviation = std::sqrt(std::max(0.0, square - spread.mean * spread.mean));
  return spread;
}

using State = std::map<std::string, std::vector<double>>;

/// Converts numbers to hexadecimal text: JSON has no infinity and no NaN.
nlohmann::json to_json(const State& state) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, numbers] : state) {
    json[name] = nlohmann::json::array();
    for (const double number : numbers) json[name].push_back(fmt::format("{:a}", number));
  }
  return json;
}

State from_json(const nlohmann::json& json) {
  State state;
  for (const auto& [name, numbers] : json.items()) {
    for (const auto& number : numbers) {
      state[name].push_back(std::strtod(number.get<std::string>().c_str(), nullptr));
    }
  }
  return state;
}

}  // namespace

LossScaling::LossScaling(const std::optional<policy::Policy>& policy) : policy_(policy) {
  if (!policy_) return;
  const policy::Info& info = policy::info_of(*policy_);
  by_layer_ = info.needs == policy::Needs::layers;
  if (info.needs == policy::Needs::tensors) {
    throw log::BadInput(fmt::format(
        "policy {}: scales every FP8 tensor by itself and is not a loss scale, which a run needs; "
        "choose another one (halfscope policies --list), or replay it: halfscope policies RUN "
        "--policy {}",
        info.name, info.name));
  }
}

double LossScaling::loss_scale() const {
  return policy_ && !by_layer_ ? policy::scale_of(*policy_) : 1.0;
}

void LossScaling::begin_pass() {
  accumulated_ = 1;
  error_ = {};
}

double LossScaling::layer(backend::Backend& backend, const std::string& name,
                          const Tensor& gradient, const Tensor& weight, double scale) {
  policy::Policy& own = layers_.try_emplace(name, *policy_).first->second;
  const Spread of_gradient = spread_of(backend, gradient, scale);
  policy::LayerFacts facts;
  facts.previous_scale = scale;
  facts.grad_mean = of_gradient.mean * scale;
  facts.grad_std = of_gradient.deviation * scale;
  facts.grad_max_abs = of_gradient.max_abs * scale;
  facts.has_weight = static_cast<bool>(weight);
  if (facts.has_weight) {
    const Spread of_weight = spread_of(backend, weight, 1);
    facts.weight_mean = of_weight.mean;
    facts.weight_std = of_weight.deviation;
    facts.weight_max_abs = of_weight.max_abs;
    facts.fan_in = fan_in(weight.shape);
  }
  const policy::Decision decision =
      policy::advance(own, {.nonfinite = !std::isfinite(facts.grad_max_abs),
                            .max_abs = facts.grad_max_abs,
                            .layer = &facts});
  if (error_.empty()) error_ = decision.error;
  accumulated_ = scale * policy::scale_of(own);
  return decision.error.empty() ? policy::scale_of(own) : 1.0;
}

policy::Decision LossScaling::advance(bool nonfinite, double max_abs) {
  if (!policy_) return {};
  if (by_layer_) return {policy::Action::apply, error_};
  return policy::advance(*policy_, {.nonfinite = nonfinite, .max_abs = max_abs});
}

std::string LossScaling::state() const {
  nlohmann::json json = nlohmann::json::object();
  if (policy_ && !by_layer_) json["loss"] = to_json(policy::state_of(*policy_));
  for (const auto& [name, own] : layers_) json["layers"][name] = to_json(policy::state_of(own));
  return json.dump();
}

void LossScaling::restore(const std::string& state) {
  try {
    const nlohmann::json json = nlohmann::json::parse(state);
    if (policy_ && !by_layer_) policy::restore(*policy_, from_json(json.at("loss")));
    layers_.clear();
    if (!json.contains("layers") || !policy_) return;
    for (const auto& [name, numbers] : json.at("layers").items()) {
      policy::restore(layers_.try_emplace(name, *policy_).first->second, from_json(numbers));
    }
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(error.what());
  }
}

}  // namespace halfscope::sim::training
