// SPDX-License-Identifier: Apache-2.0
#include "analyzers/updates/optimizer_update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "analyzers/frames/elements.hpp"

namespace halfscope::analyzers::updates {

using frames::WholeStep;

namespace {

using nlohmann::json;
using optimizer::Algorithm;

/// Returns one of PyTorch's own kinds; empty for other optimizers, which may compute anything.
std::optional<Algorithm> algorithm_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && !name.starts_with("torch.optim.")) return std::nullopt;
  const std::string_view last = dot == std::string_view::npos ? name : name.substr(dot + 1);
  if (last == "SGD") return Algorithm::sgd;
  if (last == "Adam") return Algorithm::adam;
  if (last == "AdamW") return Algorithm::adamw;
  return std::nullopt;
}

/// Returns the value of a key, or null if `object` is no object or lacks the key.
const json& at(const json& object, const char* key) {
  static const json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

bool take(const json& group, const char* key, double& to) {
  const json& value = at(group, key);
  if (value.is_number()) to = value.get<double>();
  return value.is_number();
}

void take(const json& group, const char* key, bool& to) {
  if (const json& value = at(group, key); value.is_boolean()) to = value.get<bool>();
}

/// Returns the run's parameter groups; null if it has none.
const json& groups_of(const log::Manifest& manifest) {
  return at(at(*manifest.about, "optimizer"), "param_groups");
}

/// Returns the sampled step's parameter groups, else the run's.
json groups_of(const WholeStep& step) {
  const auto found = step.metadata.find("hyperparameters");
  if (found != step.metadata.end()) {
    json groups = json::parse(found->second, nullptr, false);
    if (groups.is_array()) return groups;
  }
  return groups_of(step.run->manifest());
}

/// Returns the index of the group with the parameter. A single group that does not list its
/// parameters has all of them.
std::optional<std::size_t> group_with(const json& groups, const std::string& parameter) {
  if (!groups.is_array()) return std::nullopt;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const json& names = at(groups[i], "params");
    if (names.is_null() && groups.size() == 1) return i;
    if (names.is_array() && std::find(names.begin(), names.end(), json(parameter)) != names.end()) {
      return i;
    }
  }
  return std::nullopt;
}

/// Reads the numbers that torch.optim's groups have; assumes PyTorch's defaults for missing ones.
void take_numbers(const json& group, Optimizer& o) {
  const auto take_or_assume = [&](const char* key, double& to) {
    if (!take(group, key, to)) o.assumed.push_back(fmt::format("{} {}", key, to));
  };
  if (o.algorithm == Algorithm::adamw) o.weight_decay = 0.01;
  take_or_assume("weight_decay", o.weight_decay);
  if (!o.is_adam()) {
    take_or_assume("momentum", o.momentum);
    return;
  }
  take_or_assume("eps", o.eps);
  const json& betas = at(group, "betas");
  if (betas.is_array() && betas.size() == 2 && betas[0].is_number() && betas[1].is_number()) {
    o.beta1 = betas[0].get<double>();
    o.beta2 = betas[1].get<double>();
  } else {
    o.assumed.push_back(fmt::format("betas {} and {}", o.beta1, o.beta2));
  }
}

/// Returns this step's rate; a scheduler may have changed the run's initial one.
std::optional<double> learning_rate(const WholeStep& step, const json& group, std::size_t index) {
  if (step.metadata.contains("hyperparameters") && at(group, "lr").is_number()) {
    return at(group, "lr").get<double>();
  }
  if (step.scalars == nullptr) return std::nullopt;
  if (index == 0) return step.scalars->learning_rate;
  const auto found = step.scalars->more.find("learning_rate/group-" + std::to_string(index));
  return found == step.scalars->more.end() ? std::nullopt : std::optional(found->second);
}

template <typename T>
ComputedUpdate compute(const Optimizer& o, const OptimizerInputs& in) {
  std::vector<T> values(in.count);
  optimizer::StepOptions options;
  options.steps = in.steps;
  options.scale = in.gradient_scale;
  options.moments_are_new = options.update_only = true;
  options.dtype = sizeof(T) == sizeof(double) ? Dtype::f64
                  : in.weight.data != nullptr ? in.weight.dtype
                                              : Dtype::f32;
  const optimizer::Step<T> step(*o.row, o.settings(), options);
  step.run(in, 0, in.count, [&](const optimizer::Results<T>& of) {
    std::copy_n(of.weight, of.count, values.begin() + static_cast<std::ptrdiff_t>(of.start));
  });
  return {std::move(values)};
}

/// Returns the row of PyTorch's implementation: by the group's flags, the device of the run and
/// PyTorch's version; a GPU's default is foreach. Fused kernels changed in PyTorch 2.11.
const optimizer::Variant& row_of(const json& about, const json& group) {
  const auto is_set = [&](const char* key) {
    const json& value = at(group, key);
    return value.is_boolean() && value.get<bool>();
  };
  const json& devices = at(about, "devices");
  const bool on_gpu = devices.is_array() && !devices.empty() && devices[0].is_string() &&
                      devices[0].get<std::string>().starts_with("cuda");
  std::string name = on_gpu ? "cuda" : "cpu";
  if (is_set("fused")) {
    const json& torch = at(at(about, "versions"), "torch");
    int major = 2, minor = 11;
    if (torch.is_string()) {
      std::sscanf(torch.get<std::string>().c_str(), "%d.%d", &major, &minor);
    }
    name += on_gpu && std::pair(major, minor) < std::pair(2, 11) ? "-fused-2025" : "-fused";
  } else {
    const json& foreach = at(group, "foreach");
    if (foreach.is_boolean() ? foreach.get<bool>() : on_gpu) name += "-foreach";
    if (on_gpu && is_set("capturable")) name += "-capturable";
  }
  return *optimizer::find_variant(name);
}

/// Returns the manifest's optimizer with the settings of one of its groups.
std::optional<Optimizer> described(const log::Manifest& manifest, const json& group) {
  const json& name = at(at(*manifest.about, "optimizer"), "class");
  const auto algorithm = name.is_string() ? algorithm_of(name.get<std::string>()) : std::nullopt;
  if (!algorithm) return std::nullopt;
  Optimizer o;
  o.algorithm = *algorithm;
  o.row = &row_of(*manifest.about, group);
  take_numbers(group, o);
  take(group, "nesterov", o.nesterov);
  take(group, "maximize", o.maximize);
  take(group, "amsgrad", o.amsgrad);
  take(group, "dampening", o.dampening);
  bool decoupled = false;
  take(group, "decoupled_weight_decay", decoupled);
  if (decoupled) o.algorithm = Algorithm::adamw;
  return o;
}

}  // namespace

std::optional<Optimizer> optimizer_of(const WholeStep& step, const std::string& parameter) {
  if (step.run == nullptr) return std::nullopt;
  const json groups = groups_of(step);
  const auto index = group_with(groups, parameter);
  if (!index) return std::nullopt;
  auto optimizer = described(step.run->manifest(), groups[*index]);
  if (optimizer) optimizer->rate = learning_rate(step, groups[*index], *index);
  return optimizer;
}

std::optional<Optimizer> optimizer_of(const log::Manifest& manifest, const std::string& parameter) {
  const json& groups = groups_of(manifest);
  const auto index = group_with(groups, parameter);
  return index ? described(manifest, groups[*index]) : std::nullopt;
}

TensorView ComputedUpdate::view() const {
  return std::visit(
      [](const auto& held) { return halfscope::view_of(std::span(held.data(), held.size())); },
      values);
}

optimizer::Settings Optimizer::settings() const {
  Settings all = *this;
  all.lr = *rate;
  return all;
}

ComputedUpdate compute_update(const Optimizer& optimizer, const OptimizerInputs& inputs) {
  const TensorView views[] = {inputs.weight, inputs.gradient, inputs.first, inputs.second,
                              inputs.largest};
  const bool wide = std::ranges::any_of(views, [](const TensorView& view) {
    return view.data != nullptr && view.dtype == Dtype::f64;
  });
  return wide ? compute<double>(optimizer, inputs) : compute<float>(optimizer, inputs);
}

ComputedUpdate subtract(const TensorView& after, const TensorView& before) {
  constexpr std::size_t kBlock = 4096;
  std::vector<double> values = frames::elements(after, 0, after.count);
  for (std::size_t start = 0; start < before.count; start += kBlock) {
    const std::size_t n = std::min(kBlock, before.count - start);
    const std::vector<double> block = frames::elements(before, start, n);
    for (std::size_t i = 0; i < n; ++i) values[start + i] -= block[i];
  }
  return {std::move(values)};
}

double first_element(const TensorView& tensor) { return frames::elements(tensor, 0, 1).front(); }

}  // namespace halfscope::analyzers::updates
