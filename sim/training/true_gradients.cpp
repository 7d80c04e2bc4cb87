// SPDX-License-Identifier: Apache-2.0
#include "sim/training/true_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "halfscope/table/boundary.hpp"
#include "sim/backend/reference/backend.hpp"
#include "sim/backend/reference/sums.hpp"
#include "sim/networks/network.hpp"

namespace halfscope::sim::training {

using autograd::Parameter;
using backend::Backend;
using backend::Tensor;
using backend::reference::Sum;
using log::Role;

namespace {

/// Returns the smallest magnitude that, multiplied by `scale`, does not round to zero in `dtype`.
/// If the scale is not a positive finite number, nothing counts as underflow, and the result is
/// below every magnitude.
Magnitude first_stored(Dtype dtype, double scale) {
  if (!(scale > 0) || !std::isfinite(scale)) return {std::numeric_limits<int>::min(), 0};
  return boundaries(format_of(dtype), scale).nonzero;
}

/// Stored gradients of the run.
struct Stored {
  std::span<const float> values;
  Dtype dtype;
  double scale;  ///< scale of the values
};

/// Accumulated errors of one tensor.
struct Sums {
  GradientError error;
  Sum truth, run, difference, lost, underflowed, dot;

  void add(std::span<const double> truths, const Stored& stored) {
    if (truths.size() != stored.values.size()) {
      throw std::logic_error(error.name + ": the reference has another number of values");
    }
    error.total += truths.size();
    const Magnitude first = first_stored(stored.dtype, stored.scale);
    for (std::size_t i = 0; i < truths.size(); ++i) {
      add(truths[i], stored.values[i] / stored.scale, first);
    }
  }

  GradientError finish() {
    error.true_norm = std::sqrt(truth.value());
    error.run_norm = std::sqrt(run.value());
    error.error_norm = std::sqrt(difference.value());
    error.lost_norm = std::sqrt(lost.value());
    error.underflowed_norm = std::sqrt(underflowed.value());
    error.dot = dot.value();
    return error;
  }

 private:
  void add(double t, double x, const Magnitude& first) {
    if (!std::isfinite(x)) {
      ++error.nonfinite;
      return;
    }
    if (t != 0) ++error.true_nonzero;
    if (t != 0 && x == 0) {
      ++error.lost;
      lost.add_product(t, t);
      if (std::isfinite(t) && magnitude_of(std::abs(t)) < first) {
        ++error.underflowed;
        underflowed.add_product(t, t);
      }
    }
    if (t == 0 && x != 0) ++error.spurious;
    if (t != 0 && x != 0 && std::signbit(t) != std::signbit(x)) ++error.sign_changed;
    truth.add_product(t, t);
    run.add_product(x, x);
    difference.add_product(x - t, x - t);
    dot.add_product(x, t);
  }
};

}  // namespace

/// Errors of a step's tensors, in the order of their first values.
class TrueGradients::Comparison {
 public:
  void add(Role role, const std::string& name, std::span<const double> truth,
           const Stored& stored) {
    const auto same = [&](const Sums& s) { return s.error.role == role && s.error.name == name; };
    auto at = std::find_if(sums_.begin(), sums_.end(), same);
    if (at == sums_.end()) {
      at = sums_.emplace(sums_.end());
      at->error.role = role;
      at->error.name = name;
    }
    at->add(truth, stored);
  }

  std::vector<GradientError> finish() {
    std::vector<GradientError> errors;
    for (Sums& sums : sums_) errors.push_back(sums.finish());
    return errors;
  }

 private:
  std::vector<Sums> sums_;
};

TrueGradients::TrueGradients(const Settings& settings, const data::Data& data)
    : settings_(settings),
      data_(data),
      reference_(backend::make_reference_backend()),
      parameters_(*reference_, backend::kPrecisions[0], settings.seed) {}

void TrueGradients::see(Backend& backend, const std::string& name, const Tensor& gradient,
                        double scale) {
  seen_.push_back({name, gradient.dtype, backend.get(gradient), scale});
}

void TrueGradients::take_weights(Backend& backend, autograd::Parameters& run,
                                 const data::Batch& batch) {
  const std::vector<Parameter*> theirs = run.trained();
  if (parameters_.trained().size() != theirs.size()) {  // creates the parameters
    autograd::Tape tape(*reference_, parameters_, false);
    settings_.network->forward(tape, *reference_, batch, Dtype::f32, data_);
  }
  const std::vector<Parameter*> ours = parameters_.trained();
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    reference_->set(ours[i]->weight, backend.get(theirs[i]->updated()));
  }
}

StepError TrueGradients::compare(Backend& backend, autograd::Parameters& run,
                                 std::span<const double> scales, std::int64_t first_batch) {
  StepError step;
  Comparison comparison;
  auto seen = seen_.begin();
  const int microbatches = settings_.accumulation_steps;
  for (int i = 0; i < microbatches; ++i) {
    const data::Batch batch = data_.batch(first_batch + i, settings_.batch);
    if (i == 0) take_weights(backend, run, batch);
    autograd::Tape tape(*reference_, parameters_, true);
    tape.watch([&](Role role, const std::string& name, const Tensor& truth, double) {
      if (role != Role::activation_grad) return;
      if (seen == seen_.end() || seen->name != name) {
        throw std::logic_error(name + ": the run did not have this gradient");
      }
      comparison.add(role, name, backend::reference::values(truth),
                     {seen->values, seen->dtype, seen->scale});
      ++seen;
    });
    settings_.network->forward(tape, *reference_, batch, Dtype::f32, data_);
    tape.backward(1.0 / microbatches, i > 0);
    step.true_loss += tape.loss() / microbatches;
  }
  const std::vector<Parameter*> ours = parameters_.trained(), theirs = run.trained();
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const Tensor& gradient = theirs[i]->gradient;
    const std::vector<float> values = backend.get(gradient);
    comparison.add(Role::weight_grad, ours[i]->name, backend::reference::values(ours[i]->gradient),
                   {values, gradient.dtype, scales[i]});
  }
  step.tensors = comparison.finish();
  return step;
}

}  // namespace halfscope::sim::training
