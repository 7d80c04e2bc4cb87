// SPDX-License-Identifier: Apache-2.0
#include "sim/recording.hpp"

#include <fmt/format.h>

#include <map>

#include "sim/run_settings.hpp"

namespace halfscope::sim {

using log::Role;

Recorder::Recorder(const Settings& settings, Backend& backend, log::RunLogWriter& writer,
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
}

void Recorder::see(Role role, const std::string& name, const Tensor& tensor, double scale) {
  if (!tables_) return;
  const bool gradient = role == Role::activation_grad || role == Role::weight_grad;
  const bool scaled = gradient && scaled_;
  step_tables_.add(role, name, tensor, scaled, scale, role == Role::weight_grad);
}

void Recorder::see_weights(const std::vector<Parameter*>& parameters,
                           const std::vector<double>& scales) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = *parameters[i];
    if (tables_) {
      step_tables_.add(Role::weight, parameter.name, parameter.weight, false, 1, true);
      if (parameter.master) {
        step_tables_.add(Role::master_weight, parameter.name, parameter.master, false, 1, true);
      }
      see(Role::weight_grad, parameter.name, parameter.gradient, scales[i]);
    }
    if (!whole_) continue;
    step_tables_.keep_whole("weight/" + parameter.name, parameter.weight);
    // A sample has one scale for all its gradients.
    if (!by_layer_) step_tables_.keep_whole("weight_grad/" + parameter.name, parameter.gradient);
  }
}

void Recorder::see_update(const Parameter& parameter, const Tensor& delta) {
  const auto keys = state_names(settings_.rule.kind);
  if (tables_) {
    step_tables_.add(Role::update, parameter.name, delta, false, 1, true);
    for (std::size_t i = 0; i < parameter.state.size(); ++i) {
      step_tables_.add(Role::optimizer_state, fmt::format("{}/{}", keys[i], parameter.name),
                       parameter.state[i], false, 1, true);
    }
  }
  if (!whole_) return;
  step_tables_.keep_whole("update/" + parameter.name, delta);
  for (std::size_t i = 0; i < parameter.state.size(); ++i) {
    step_tables_.keep_whole(fmt::format("optimizer_state/{}/{}", keys[i], parameter.name),
                            parameter.state[i]);
  }
}

void Recorder::finish(const std::vector<AttemptFacts>& attempts, bool skipped) {
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
  if (last.microbatches.size() > 1) {
    for (std::size_t i = 0; i < last.microbatches.size(); ++i) {
      scalars.more[fmt::format("max_abs/activation_grad/microbatch-{}", i)] = last.microbatches[i];
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

}  // namespace halfscope::sim
