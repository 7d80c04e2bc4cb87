// SPDX-License-Identifier: Apache-2.0
#include "sim/training/recording.hpp"

#include <fmt/format.h>

#include <map>

#include "sim/training/run_settings.hpp"

namespace halfscope::sim::training {

using autograd::Parameter;
using log::Role;

Recorder::Recorder(const Settings& settings, backend::Backend& backend, log::RunLogWriter& writer,
                   const std::filesystem::path& folder, std::int64_t from_step)
    : settings_(settings),
      writer_(writer),
      step_tables_(backend),
      scaled_(settings.policy.has_value()),
      by_layer_(settings.policy &&
                policy::info_of(*settings.policy).needs == policy::Needs::layers) {
  if (settings.true_error) truth_.emplace(folder, from_step);
}

void Recorder::begin_attempt(std::int64_t step) {
  step_ = step;
  const std::int64_t every = settings_.record_every;
  tables_ = step % every == 0;
  const std::int64_t last = (settings_.steps - 1) / every * every;
  whole_ =
      settings_.sample_every == 0 ? step == 0 || step == last : step % settings_.sample_every == 0;
  step_tables_.clear();
  seen_.clear();
}

void Recorder::see(Role role, const std::string& name, const backend::Tensor& tensor,
                   double scale) {
  if (!tables_) return;
  const bool scaled = role == Role::activation_grad && scaled_;
  constexpr std::size_t kTogether = 16;  // each request has a cost on a GPU
  seen_.push_back({role, name, tensor, scaled, scale, false});
  if (seen_.size() == kTogether) count_seen();
}

void Recorder::count_seen() {
  step_tables_.add(seen_);
  seen_.clear();
}

void Recorder::see_local(const std::vector<Parameter*>& parameters, double scale) {
  std::vector<TensorToCount> counted;
  for (const Parameter* const p : parameters) {
    if (tables_) {
      counted.push_back({Role::local_weight_grad, p->name, p->gradient, scaled_, scale, true});
    }
    if (whole_) step_tables_.keep_whole("local_weight_grad/" + p->name, p->gradient);
  }
  step_tables_.add(counted);
}

void Recorder::see_weights(const std::vector<Parameter*>& parameters,
                           const std::vector<double>& scales) {
  count_seen();
  std::vector<TensorToCount> counted;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = *parameters[i];
    if (tables_) {
      counted.push_back({Role::weight, p.name, p.weight, false, 1, true});
      if (p.master) counted.push_back({Role::master_weight, p.name, p.master, false, 1, true});
      counted.push_back({Role::weight_grad, p.name, p.gradient, scaled_, scales[i], true});
    }
    if (!whole_) continue;
    step_tables_.keep_whole("weight/" + p.name, p.weight);
    // A sample stores one scale for all its gradients.
    if (!by_layer_) step_tables_.keep_whole("weight_grad/" + p.name, p.gradient);
  }
  step_tables_.add(counted);
}

void Recorder::see_updates(const std::vector<Parameter*>& parameters,
                           const std::vector<backend::Tensor>& deltas) {
  const auto keys = state_names(settings_.rule.kind);
  std::vector<TensorToCount> counted;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = *parameters[i];
    if (tables_) counted.push_back({Role::update, p.name, deltas[i], false, 1, true});
    if (whole_) step_tables_.keep_whole("update/" + p.name, deltas[i]);
    for (std::size_t k = 0; k < p.state.size(); ++k) {
      const std::string name = fmt::format("{}/{}", keys[k], p.name);
      if (tables_) counted.push_back({Role::optimizer_state, name, p.state[k], false, 1, true});
      if (whole_) step_tables_.keep_whole("optimizer_state/" + name, p.state[k]);
    }
  }
  step_tables_.add(counted);
}

void Recorder::finish(const std::vector<AttemptFacts>& attempts,
                      std::span<const Microbatch> microbatches, bool skipped) {
  const AttemptFacts& last = attempts.back();
  if (tables_) step_tables_.write(writer_, step_);
  if (whole_) {
    std::map<std::string, std::string> metadata;
    if (scaled_) metadata["scale"] = fmt::format("{}", last.loss_scale);
    if (skipped) metadata["found_inf"] = "1";
    step_tables_.write_whole(writer_, step_, metadata);
  }
  log::StepScalars scalars;
  scalars.step = step_;
  scalars.loss = last.loss;
  scalars.learning_rate = settings_.rule.learning_rate;
  scalars.loss_scale = last.loss_scale;
  scalars.found_inf = skipped;
  scalars.max_abs_weight_grad = last.weight_grad;
  scalars.max_abs_activation_grad = last.activation_grad;
  for (std::size_t i = 0; i < microbatches.size(); ++i) {
    const auto& [activation_grad, weight_grad] = microbatches[i];
    if (microbatches.size() > 1) {
      scalars.more[fmt::format("max_abs/activation_grad/microbatch-{}", i)] = activation_grad;
    }
    if (weight_grad) {
      scalars.more[fmt::format("max_abs/weight_grad/microbatch-{}", i)] = *weight_grad;
    }
  }
  for (std::size_t i = 0; attempts.size() > 1 && i < attempts.size(); ++i) {
    scalars.more[fmt::format("max_abs/weight_grad/attempt-{}", i)] = attempts[i].weight_grad;
    scalars.more[fmt::format("max_abs/activation_grad/attempt-{}", i)] =
        attempts[i].activation_grad;
    scalars.more[fmt::format("loss_scale/attempt-{}", i)] = attempts[i].loss_scale;
  }
  writer_.write(scalars);
}

void Recorder::held_out(std::int64_t step, double accuracy) {
  log::StepScalars scalars;
  scalars.step = step;
  scalars.more["held_out/accuracy"] = accuracy;
  writer_.write(scalars);
}

}  // namespace halfscope::sim::training
