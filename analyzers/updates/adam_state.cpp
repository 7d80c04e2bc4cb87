// SPDX-License-Identifier: Apache-2.0
#include "analyzers/updates/adam_state.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "analyzers/underflow/computation_order.hpp"
#include "analyzers/underflow/step_facts.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "analyzers/updates/optimizer_update.hpp"
#include "halfscope/number/convert.hpp"

namespace halfscope::analyzers::updates {

using log::Role;
using underflow::LogFindings;
using underflow::TensorFindings;

namespace {

constexpr std::string_view kSecondMoment = "exp_avg_sq", kFirstMoment = "exp_avg";

/// Returns the position of "exp_avg_sq" in a name, as a whole word; empty for "max_exp_avg_sq".
std::optional<std::size_t> second_moment_in(std::string_view name) {
  const std::size_t at = name.rfind(kSecondMoment);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t end = at + kSecondMoment.size();
  const auto parts = [](char c) { return c == '/' || c == '.'; };
  if (at > 0 && !parts(name[at - 1])) return std::nullopt;
  if (end < name.size() && !parts(name[end])) return std::nullopt;
  return at;
}

/// The tensors of one log by name and, for some roles, by the part of the name after the role.
class Named {
 public:
  explicit Named(const LogFindings& log) {
    for (const TensorFindings& t : log.tensors) {
      by_name_.try_emplace(t.name, &t);
      if (t.role == Role::weight_grad) gradients_.try_emplace(underflow::path_of(t), &t);
      if (t.role == Role::weight) weights_.try_emplace(underflow::path_of(t), &t);
      if (t.role == Role::optimizer_state && second_moment_in(t.name)) {
        moments_.try_emplace(underflow::path_of(t), &t);
      }
    }
  }
  const TensorFindings* first_moment_of(const TensorFindings& second) const {
    std::string name = second.name;
    name.replace(*second_moment_in(name), kSecondMoment.size(), kFirstMoment);
    return find(by_name_, std::string_view(name));
  }
  const TensorFindings* gradient_of(std::string_view path) const { return find(gradients_, path); }
  const TensorFindings* weight_of(std::string_view path) const { return find(weights_, path); }
  bool has_second_moment(std::string_view path) const { return find(moments_, path) != nullptr; }

 private:
  using Map = std::unordered_map<std::string_view, const TensorFindings*>;
  static const TensorFindings* find(const Map& map, std::string_view key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : found->second;
  }
  Map by_name_, gradients_, moments_, weights_;
};

/// Returns the number of second moments that are 0 although first moments of the step are not.
Interval lost_of(const TensorFindings& second, const TensorFindings* first) {
  Interval lost;
  for (const underflow::StepFindings& step : second.per_step) {
    Interval lost_now(0, step.counts.zero.high);
    if (first != nullptr) {
      if (const auto same = first->per_step.find(step.step)) {
        lost_now.low = without(step.counts.zero, same->counts.zero).low;
      }
    }
    lost += lost_now;
  }
  return lost;
}

/// Returns the number of finite nonzero values of at most this magnitude. Since the format's
/// rounding boundary is between two numbers, a histogram's segment may leave its values uncertain.
Interval up_to(const TensorFindings& tensor, double magnitude) {
  Interval count;
  for (const underflow::ScaledTable& part : tensor.tables) {
    const Magnitude limit = magnitude_of(magnitude * part.scale);
    count += without(part.table.finite_nonzero(), part.table.at_or_above(limit));
  }
  return count;
}

/// Returns half the smallest number of a format: the largest magnitude that is rounded to 0 (IEEE
/// 754-2019, 4.3.1, ties to even).
double flushed_up_to(Format format) { return std::ldexp(1.0, format.min_quantum_exponent() - 1); }

bool is_finite(const underflow::StepFindings& step) {
  return step.counts.nan.high == 0 && step.counts.inf.high == 0;
}

/// Returns the first step that was not skipped at which a tensor has NaN or infinities.
std::optional<std::int64_t> first_broken_step(const LogFindings& log) {
  const underflow::LogScalars scalars(log);
  std::optional<std::int64_t> first;
  for (const TensorFindings& t : log.tensors) {
    for (const underflow::StepFindings& step : t.per_step) {
      const log::StepScalars* const told = scalars.at(step.step);
      if (is_finite(step) || (told && told->found_inf.value_or(false))) continue;
      first = std::min(first.value_or(step.step), step.step);
    }
  }
  return first;
}

/// Returns true if a setting in Optimizer::assumed matters to the state.
bool is_used(const std::string& setting) {
  return setting.starts_with("eps ") || setting.starts_with("betas ");
}

/// The states of one log, by the type that they are held in.
class States {
 public:
  explicit States(const LogFindings& log)
      : log_(log), named_(log), broken_from_(first_broken_step(log)) {}

  std::vector<AdamState> find() && {
    for (const TensorFindings& t : log_.tensors) {
      if (t.role == Role::optimizer_state && second_moment_in(t.name)) {
        take_recorded(t);
      } else if (t.role == Role::weight) {
        take_weight(t);
      }
    }
    std::vector<AdamState> all;
    for (auto& [dtype, state] : states_) all.push_back(std::move(state));
    return all;
  }

 private:
  AdamState& state_of(Dtype held_in, const std::optional<Optimizer>& optimizer) {
    const auto [at, is_new] = states_.try_emplace(held_in);
    AdamState& state = at->second;
    if (!is_new) return state;
    const Optimizer settings = optimizer.value_or(Optimizer());  // PyTorch's defaults
    state.log = log_.name;
    state.held_in = held_in;
    state.assumed_settings = !optimizer || std::ranges::any_of(optimizer->assumed, is_used);
    state.eps = settings.eps;
    state.beta2 = settings.beta2;
    const Format format = format_of(held_in);
    state.eps_is_zero = to_double(format, from_double(format, settings.eps).bits) == 0;
    state.square_is_zero_to = std::sqrt(flushed_up_to(format));
    state.adds_nothing_to = std::sqrt(flushed_up_to(format) / (1 - settings.beta2));
    return state;
  }

  std::optional<Optimizer> adam_of(std::string_view path) const {
    if (!log_.manifest) return std::nullopt;
    const auto optimizer = optimizer_of(*log_.manifest, std::string(path));
    return optimizer && optimizer->is_adam() ? optimizer : std::nullopt;
  }

  void take_recorded(const TensorFindings& second) {
    if (!second.source_dtype || format_of(*second.source_dtype).width != 16) return;
    const std::string_view path = underflow::path_of(second);
    AdamState& state = state_of(*second.source_dtype, adam_of(path));
    const Interval lost = lost_of(second, named_.first_moment_of(second));
    state.zero += second.counts.zero;
    state.lost += lost;
    state.moments += second.counts.total;
    const double share = static_cast<double>(lost.low) /
                         static_cast<double>(std::max<std::uint64_t>(1, second.counts.total));
    if (double& most = most_lost_[state.held_in]; share > most) {
      most = share;
      state.most_lost = second.name;
    }
    add_gradient(path, state);
    if (const TensorFindings* const weight = named_.weight_of(path)) add_broken(*weight, state);
  }

  /// PyTorch creates the state with the type of the parameter that the optimizer has:
  /// torch.optim.Adam, _init_group.
  void take_weight(const TensorFindings& weight) {
    const std::string_view path = underflow::path_of(weight);
    if (named_.has_second_moment(path)) return;
    const std::optional<Optimizer> optimizer = adam_of(path);
    if (!optimizer) return;
    const std::optional<Dtype> kept = underflow::kept_in_16_bits(log_, weight);
    if (!kept) return;
    AdamState& state = state_of(*kept, optimizer);
    state.assumed_format = state.moments.high == 0;
    add_gradient(path, state);
    add_broken(weight, state);
  }

  void add_broken(const TensorFindings& weight, AdamState& state) const {
    if (!state.eps_is_zero || !broken_from_) return;
    const auto first = std::ranges::find_if_not(weight.per_step, is_finite);
    if (first == weight.per_step.end() || first == weight.per_step.begin()) return;
    if (first->step != *broken_from_) return;
    state.broken.push_back(weight.name);
    state.broken_from = first->step;
  }

  void add_gradient(std::string_view path, AdamState& state) const {
    const TensorFindings* const gradient = named_.gradient_of(path);
    if (gradient == nullptr) return;
    state.gradients += gradient->counts.finite_nonzero;
    state.adds_nothing += up_to(*gradient, state.adds_nothing_to);
    state.square_is_zero += up_to(*gradient, state.square_is_zero_to);
  }

  const LogFindings& log_;
  const Named named_;
  const std::optional<std::int64_t> broken_from_;
  std::map<Dtype, AdamState> states_;
  std::map<Dtype, double> most_lost_;  // largest lost share
};

}  // namespace

std::vector<AdamState> adam_states(const underflow::Analysis& analysis) {
  std::vector<AdamState> all;
  const auto may_have = [](const TensorFindings& t) {
    return t.role == Role::optimizer_state || t.role == Role::weight;
  };
  for (const LogFindings& log : analysis.logs) {
    if (std::ranges::none_of(log.tensors, may_have)) continue;
    for (AdamState& state : States(log).find()) all.push_back(std::move(state));
  }
  return all;
}

}  // namespace halfscope::analyzers::updates
