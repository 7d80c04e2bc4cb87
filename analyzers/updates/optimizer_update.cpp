// SPDX-License-Identifier: Apache-2.0
#include "analyzers/updates/optimizer_update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "halfscope/number/convert.hpp"

namespace halfscope::analyzers::updates {

using frames::WholeStep;

namespace {

using nlohmann::json;
using Kind = Optimizer::Kind;

constexpr std::size_t kBlock = 4096;

/// Returns one of PyTorch's own kinds; empty for other optimizers, which may compute anything.
std::optional<Kind> kind_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && !name.starts_with("torch.optim.")) return std::nullopt;
  const std::string_view last = dot == std::string_view::npos ? name : name.substr(dot + 1);
  if (last == "SGD") return Kind::sgd;
  if (last == "Adam") return Kind::adam;
  if (last == "AdamW") return Kind::adamw;
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
  if (o.kind == Kind::adamw) o.weight_decay = 0.01;
  take_or_assume("weight_decay", o.weight_decay);
  if (o.kind == Kind::sgd) {
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

/// Loads elements [first, first + n) of a tensor; exact if T is at least as wide as its type.
template <typename T>
void load(const TensorView& view, std::size_t first, std::size_t n, T* to) {
  const Format format = format_of(view.dtype);
  const auto width = static_cast<std::size_t>(format.width / 8);
  const std::byte* from = view.data + first * width;
  for (std::size_t i = 0; i < n; ++i, from += width) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, from, width);
    if (view.dtype == Dtype::f32) {
      to[i] = static_cast<T>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    } else {
      to[i] = static_cast<T>(to_double(format, bits));
    }
  }
}

/// Blocks of the inputs of an update.
template <typename T>
struct Blocks {
  using Block = std::array<T, kBlock>;
  Block weight, gradient, buffer, first, second;

  void load_all(const OptimizerInputs& in, std::size_t start, std::size_t n) {
    const auto load_one = [&](const TensorView& view, Block& to) {
      if (view.count != 0) load(view, start, n, to.data());
    };
    load_one(in.weight, weight);
    load_one(in.gradient, gradient);
    load_one(in.momentum_buffer, buffer);
    load_one(in.exp_avg, first);
    load_one(in.exp_avg_sq, second);
  }
};

/// Returns what torch.add(a, b, alpha) does: a fused multiply-add in PyTorch's vector kernels.
template <typename T>
T add(T a, T b, T alpha) {
  return std::fma(alpha, b, a);
}

template <typename T, typename Rule>
ComputedUpdate compute(const OptimizerInputs& in, std::size_t count, const Rule& rule) {
  std::vector<T> values(count);
  const auto blocks = std::make_unique<Blocks<T>>();
  for (std::size_t start = 0; start < count; start += kBlock) {
    const std::size_t n = std::min(kBlock, count - start);
    blocks->load_all(in, start, n);
    for (std::size_t i = 0; i < n; ++i) values[start + i] = rule(*blocks, i);
  }
  return {std::move(values)};
}

template <typename T>
ComputedUpdate compute_sgd(const Optimizer& o, const OptimizerInputs& in, std::size_t count) {
  const T scale = static_cast<T>(in.gradient_scale), factor = static_cast<T>(-*o.lr);
  const T decay = static_cast<T>(o.weight_decay), momentum = static_cast<T>(o.momentum);
  return compute<T>(in, count, [&](const Blocks<T>& b, std::size_t i) {
    if (o.has_buffer() && !o.nesterov) return factor * b.buffer[i];
    T direction = b.gradient[i] / scale;
    if (o.maximize) direction = -direction;
    if (o.weight_decay != 0) direction = add(direction, b.weight[i], decay);
    if (o.has_buffer()) direction = add(direction, b.buffer[i], momentum);
    return factor * direction;
  });
}

template <typename T>
ComputedUpdate compute_adam(const Optimizer& o, const OptimizerInputs& in, std::size_t count) {
  const bool decays = o.decoupled && o.weight_decay != 0;
  const T factor = static_cast<T>(-(*o.lr / (1 - std::pow(o.beta1, in.steps))));
  const T correction = static_cast<T>(std::sqrt(1 - std::pow(o.beta2, in.steps)));
  const T eps = static_cast<T>(o.eps), kept = static_cast<T>(1 - *o.lr * o.weight_decay) - 1;
  return compute<T>(in, count, [&](const Blocks<T>& b, std::size_t i) {
    const T denominator = std::sqrt(b.second[i]) / correction + eps;
    const T change = factor * b.first[i] / denominator;
    return decays ? change + b.weight[i] * kept : change;
  });
}

template <typename T>
ComputedUpdate compute(const Optimizer& o, const OptimizerInputs& in, std::size_t count) {
  return o.kind == Kind::sgd ? compute_sgd<T>(o, in, count) : compute_adam<T>(o, in, count);
}

/// Returns the manifest's optimizer with the settings of one of its groups.
std::optional<Optimizer> described(const log::Manifest& manifest, const json& group) {
  const json& name = at(at(*manifest.about, "optimizer"), "class");
  const auto kind = name.is_string() ? kind_of(name.get<std::string>()) : std::nullopt;
  if (!kind) return std::nullopt;
  Optimizer o;
  o.kind = *kind;
  take_numbers(group, o);
  take(group, "nesterov", o.nesterov);
  take(group, "maximize", o.maximize);
  take(group, "amsgrad", o.amsgrad);
  take(group, "decoupled_weight_decay", o.decoupled);
  o.decoupled = o.decoupled || *kind == Kind::adamw;
  return o;
}

}  // namespace

std::optional<Optimizer> optimizer_of(const WholeStep& step, const std::string& parameter) {
  if (step.run == nullptr) return std::nullopt;
  const json groups = groups_of(step);
  const auto index = group_with(groups, parameter);
  if (!index) return std::nullopt;
  auto optimizer = described(step.run->manifest(), groups[*index]);
  if (optimizer) optimizer->lr = learning_rate(step, groups[*index], *index);
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

ComputedUpdate compute_update(const Optimizer& optimizer, const OptimizerInputs& inputs) {
  const TensorView views[] = {inputs.weight, inputs.gradient, inputs.momentum_buffer,
                              inputs.exp_avg, inputs.exp_avg_sq};
  std::size_t count = 0;
  bool wide = false;
  for (const TensorView& view : views) {
    count = std::max(count, view.count);
    wide = wide || (view.data != nullptr && view.dtype == Dtype::f64);
  }
  return wide ? compute<double>(optimizer, inputs, count)
              : compute<float>(optimizer, inputs, count);
}

ComputedUpdate subtract(const TensorView& after, const TensorView& before) {
  OptimizerInputs in;
  in.weight = before;
  in.gradient = after;
  return compute<double>(in, after.count, [](const Blocks<double>& b, std::size_t i) {
    return b.gradient[i] - b.weight[i];
  });
}

double first_element(const TensorView& tensor) {
  double value = 0;
  load(tensor, 0, 1, &value);
  return value;
}

}  // namespace halfscope::analyzers::updates
