// SPDX-License-Identifier: Apache-2.0
#include "sim/training/stepper.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/training/run_settings.hpp"

namespace halfscope::sim::training {

using autograd::Parameter;
using backend::GradientFacts;
using backend::Tensor;
using log::Role;

namespace {

/// Returns the larger of two magnitudes. NaN counts as the largest.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

/// Returns a magnitude without its scale; 0 for a magnitude of 0, even at scale 0.
double unscaled(double magnitude, double scale) { return magnitude == 0 ? 0 : magnitude / scale; }

/// Returns true if a gradient's magnitude limits the loss scale. In a 16-bit run, gradients kept in
/// binary32 (batch normalisation's parameters) do not overflow when the others do.
bool bounds_scale(const backend::Precision& precision, const Tensor& gradient) {
  return precision.tensors == Dtype::f32 || gradient.dtype == precision.tensors;
}

/// Returns the largest scaled magnitude of the gradients that limit the scale or are not finite.
double largest_of(backend::Backend& backend, const backend::Precision& precision,
                  const std::vector<Tensor>& gradients) {
  const std::vector<GradientFacts> found = backend.facts_later(gradients)();
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].nonfinite || bounds_scale(precision, gradients[i])) {
      largest = larger(largest, found[i].max_abs);
    }
  }
  return largest;
}

/// Adds the gradients to `sums`, rounded to their dtype. If `sums` is empty, copies them.
void add_up(backend::Backend& backend, const std::vector<Tensor>& gradients,
            std::vector<Tensor>& sums) {
  const bool first = sums.empty();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Tensor sum = backend.allocate_uninitialized(gradients[i].shape, gradients[i].dtype);
    if (first) {
      backend.copy(gradients[i], sum);
      sums.push_back(sum);
    } else {
      backend.add(sums[i], gradients[i], sum);
      sums[i] = sum;
    }
  }
}

std::vector<Tensor> gradients_of(const std::vector<Parameter*>& parameters) {
  std::vector<Tensor> gradients;
  for (const Parameter* const parameter : parameters) gradients.push_back(parameter->gradient);
  return gradients;
}

}  // namespace

void make_parameters(const Settings& settings, const data::Data& data, TrainingState& state) {
  autograd::Tape tape(state.backend, state.parameters, false);
  settings.network->forward(tape, state.backend, data.batch(0, settings.batch),
                            settings.precision.tensors, data);
  const std::size_t count = state_names(settings.rule.kind).size();
  for (Parameter* const parameter : state.parameters.trained()) {
    const Tensor& updated = parameter->updated();
    while (parameter->state.size() < count) {
      parameter->state.push_back(state.backend.make(updated.shape, updated.dtype));
    }
  }
}

/// The forward and backward pass of one microbatch, with the facts for the recorder and the policy.
class Stepper::Pass {
 public:
  Pass(Stepper& of, AttemptFacts& facts, Recorder& recorder, double loss_scale)
      : of_(of),
        state_(of.state_),
        facts_(facts),
        recorder_(recorder),
        loss_scale_(loss_scale),
        microbatches_(of.settings_.accumulation_steps) {}

  /// If `add` is true, adds the gradients to those of earlier passes.
  void run(bool add) {
    autograd::Tape tape(state_.backend, state_.parameters, true);
    tape.watch([this](Role role, const std::string& name, const Tensor& tensor, double scale) {
      see(role, name, tensor, scale);
    });
    if (state_.scaling.by_layer()) {
      tape.scale_layers([this](const std::string& name, const Tensor& gradient,
                               const Tensor& weight, double scale) {
        waiting_ = {};
        return state_.scaling.layer(state_.backend, name, gradient, weight, scale);
      });
    }
    {
      const data::Batch batch = of_.batches_.take(state_.counters.next_batch++);
      of_.settings_.network->forward(tape, state_.backend, batch, of_.settings_.precision.tensors,
                                     of_.data_);
      tape.backward(loss_scale_ / microbatches_, add);
    }  // frees a large batch while a GPU is still computing
    finish_layer();
    facts_.loss += tape.loss() / (microbatches_ * of_.settings_.ranks);
    take_facts();
  }

 private:
  struct Waiting {
    std::string name;
    Tensor gradient;
    double scale = 1;
  };

  void see(Role role, const std::string& name, const Tensor& tensor, double scale) {
    if (role == Role::weight_grad) return;  // recorded after all microbatches are added
    if (role != Role::activation_grad) return recorder_.see(role, name, tensor, scale);
    const bool by_layer = state_.scaling.by_layer();
    const double carried = by_layer ? scale : loss_scale_;
    recorder_.see(role, name, tensor, carried);
    if (recorder_.wants_truth()) of_.truth_->see(state_.backend, name, tensor, carried);
    look_at(tensor, carried);
    if (!by_layer) return;
    finish_layer();
    waiting_ = {name, tensor, scale};
  }

  /// Requests a gradient's facts. Requests are made for several gradients together, because each
  /// has a cost on a GPU, and are computed while the pass continues.
  void look_at(const Tensor& gradient, double carried) {
    constexpr std::size_t kTogether = 16;
    gradients_.push_back(gradient);
    seen_.push_back({carried, bounds_scale(of_.settings_.precision, gradient)});
    if (gradients_.size() == kTogether) ask_for_facts();
  }

  void ask_for_facts() {
    if (!gradients_.empty()) asked_.push_back(state_.backend.facts_later(gradients_));
    gradients_.clear();
  }

  void take_facts() {
    ask_for_facts();
    double largest = 0;
    auto seen = seen_.begin();
    for (const backend::Later<std::vector<GradientFacts>>& some : asked_) {
      for (const GradientFacts& found : some()) {
        const auto [carried, bounds] = *seen++;
        facts_.nonfinite = facts_.nonfinite || found.nonfinite;
        if (!found.nonfinite && !bounds) continue;
        facts_.activation_grad = larger(facts_.activation_grad, unscaled(found.max_abs, carried));
        largest = larger(largest, found.max_abs);
      }
    }
    facts_.microbatches.push_back({largest, {}});
  }

  /// Advances the policy of a layer that does not pass a gradient on (the first layer). Its factor
  /// multiplies nothing, but the recorded scale includes it.
  void finish_layer() {
    if (!waiting_.gradient) return;
    const Waiting layer = std::exchange(waiting_, {});
    for (const Parameter* const parameter : state_.parameters.trained()) {
      if (parameter->name != layer.name + ".weight" || parameter->weight.shape.size() < 2) continue;
      state_.scaling.layer(state_.backend, layer.name, layer.gradient, parameter->weight,
                           layer.scale);
    }
  }

  /// Facts known when a gradient was seen.
  struct Seen {
    double carried;  ///< scale of the gradient
    bool bounds;
  };

  Stepper& of_;
  TrainingState& state_;
  AttemptFacts& facts_;
  Recorder& recorder_;
  double loss_scale_;
  int microbatches_;  ///< per rank
  std::vector<Seen> seen_;
  std::vector<backend::Later<std::vector<GradientFacts>>> asked_;  ///< for seen_, in order
  std::vector<Tensor> gradients_;  ///< seen, but their facts are not requested yet
  Waiting waiting_;  ///< last gradient seen, while its layer has not asked for a factor
};

void Stepper::passes(AttemptFacts& facts, double scale) {
  for (int i = 0; i < settings_.accumulation_steps; ++i) {
    Pass(*this, facts, recorders_.front(), scale).run(i > 0);
  }
}

/// Computes each pass's gradients separately and adds them: first the microbatches of each rank,
/// then the ranks in order, with each sum rounded to the gradient's dtype. Before the ranks are
/// added, each rank's gradients are divided by the number of ranks, as in PyTorch's
/// DistributedDataParallel.
void Stepper::passes_of_ranks(AttemptFacts& facts, double scale) {
  const std::vector<Parameter*> parameters = state_.parameters.trained();
  std::vector<Tensor> reduced;
  for (Recorder& recorder : recorders_) {
    std::vector<Tensor> own;
    for (int i = 0; i < settings_.accumulation_steps; ++i) {
      Pass(*this, facts, recorder, scale).run(false);
      const std::vector<Tensor> gradients = gradients_of(parameters);
      facts.microbatches.back().weight_grad =
          largest_of(state_.backend, settings_.precision, gradients);
      recorder.see_local(parameters, scale);
      add_up(state_.backend, gradients, own);
    }
    for (Tensor& gradient : own) {
      Tensor share = state_.backend.allocate_uninitialized(gradient.shape, gradient.dtype);
      state_.backend.multiply(gradient, 1.0 / settings_.ranks, share);
      gradient = share;
    }
    add_up(state_.backend, own, reduced);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    state_.backend.copy(reduced[i], parameters[i]->gradient);
  }
}

AttemptFacts Stepper::attempt() {
  AttemptFacts facts;
  if (truth_) truth_->begin();
  state_.scaling.begin_pass();
  const double scale = state_.scaling.loss_scale();
  settings_.ranks == 1 ? passes(facts, scale) : passes_of_ranks(facts, scale);
  const std::vector<Parameter*> parameters = state_.parameters.trained();
  const std::vector<Tensor> gradients = gradients_of(parameters);
  scales_.clear();
  for (const Parameter* const parameter : parameters) {
    scales_.push_back(state_.scaling.by_layer() ? parameter->gradient_scale : scale);
  }
  found_ = state_.backend.facts_later(gradients)();
  for (std::size_t i = 0; i < found_.size(); ++i) {
    facts.nonfinite = facts.nonfinite || found_[i].nonfinite;
    if (found_[i].nonfinite || bounds_scale(settings_.precision, gradients[i])) {
      facts.weight_grad = larger(facts.weight_grad, unscaled(found_[i].max_abs, scales_[i]));
    }
  }
  facts.loss_scale = state_.scaling.used_scale();
  for (Recorder& recorder : recorders_) recorder.see_weights(parameters, scales_);
  return facts;
}

/// Returns the factor of torch.nn.utils.clip_grad_norm_, by the norm of all unscaled gradients.
double Stepper::clip_factor() const {
  if (settings_.clip == 0) return 1;
  double squares = 0;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    squares +=
        found_[i].nonfinite ? found_[i].max_abs : found_[i].sum_squares / scales_[i] / scales_[i];
  }
  const double factor = settings_.clip / (std::sqrt(squares) + 1e-6);
  return factor > 1 ? 1 : factor;  // a NaN is returned as it is
}

void Stepper::update() {
  const std::vector<Parameter*> parameters = state_.parameters.trained();
  const double factor = clip_factor();
  std::vector<Tensor> deltas(parameters.size());
  backend::UpdateRule rule = settings_.rule;
  rule.t = ++state_.counters.applied;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Parameter& parameter = *parameters[i];
    Tensor& weight = parameter.updated();
    if (recorders_.front().wanted())
      deltas[i] = state_.backend.allocate_uninitialized(weight.shape, weight.dtype);
    state_.backend.update(rule, parameter.gradient, factor / scales_[i], weight, parameter.state,
                          deltas[i]);
    if (parameter.master) state_.backend.copy(parameter.master, parameter.weight);
  }
  for (Recorder& recorder : recorders_) {
    if (recorder.wanted()) recorder.see_updates(parameters, deltas);
  }
}

void Stepper::compare_with_truth(double loss) {
  StepError error = truth_->compare(state_.backend, state_.parameters, scales_,
                                    state_.counters.next_batch - settings_.accumulation_steps);
  error.step = state_.counters.step;
  error.loss = loss;
  recorders_.front().see_truth(error);
}

StepResult Stepper::step(std::string& error) {
  Counters& counters = state_.counters;
  StepResult result;
  result.step = counters.step;
  std::vector<AttemptFacts> attempts;
  policy::Decision decision;
  do {
    for (Recorder& recorder : recorders_) recorder.begin_attempt(counters.step);
    attempts.push_back(attempt());
    const AttemptFacts& facts = attempts.back();
    decision = state_.scaling.advance(facts.nonfinite, facts.weight_grad);
  } while (decision.action == policy::Action::retry && decision.error.empty());
  result.attempts = static_cast<int>(attempts.size());
  result.scale = attempts.front().loss_scale;
  result.loss = attempts.back().loss;
  result.skipped = decision.action == policy::Action::skip;
  error = decision.error;
  if (recorders_.front().wants_truth()) compare_with_truth(result.loss);
  if (!result.skipped && error.empty()) update();
  const std::size_t own = attempts.back().microbatches.size() / recorders_.size();
  for (std::size_t rank = 0; rank < recorders_.size(); ++rank) {
    const auto microbatches = std::span(attempts.back().microbatches).subspan(rank * own, own);
    recorders_[rank].finish(attempts, microbatches, result.skipped);
  }
  counters.attempts += result.attempts;
  if (result.skipped) ++counters.skipped;
  counters.nonfinite = std::isfinite(result.loss) ? 0 : counters.nonfinite + 1;
  if (counters.step == 0) counters.first_loss = result.loss;
  counters.last_loss = result.loss;
  ++counters.step;
  return result;
}

}  // namespace halfscope::sim::training
