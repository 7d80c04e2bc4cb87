// SPDX-License-Identifier: Apache-2.0
// The tensors of one pair, and their counts.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "analyzers/underflow/modules.hpp"
#include "analyzers/updates/pairs.hpp"

namespace halfscope::analyzers::updates {

using frames::ProgressCallback;
using frames::Selection;
using frames::WholeStep;
using underflow::UpdateSource;

namespace {

/// Pairs per progress report: short work, but enough for all threads.
constexpr std::size_t kCountSlice = std::size_t{1} << 24, kWhatIfSlice = std::size_t{1} << 20;

TensorView slice_of(const TensorView& view, std::size_t first, std::size_t count) {
  const TensorView before{view.dtype, nullptr, first};
  return {view.dtype, view.data + before.bytes(), std::min(count, view.count - first)};
}

/// Counts pairs in slices. The sum does not depend on the slices.
template <typename Sum, typename Count>
Sum sum_of_slices(const TensorView& weights, const TensorView& partners, std::size_t slice,
                  const ProgressCallback& tell, const Count& count) {
  if (weights.count <= slice) return count(weights, partners);
  Sum sum;
  for (std::size_t first = 0; first < weights.count; first += slice) {
    sum += count(slice_of(weights, first, slice), slice_of(partners, first, slice));
    if (tell) {
      tell(static_cast<double>(std::min(first + slice, weights.count)) /
           static_cast<double>(weights.count));
    }
  }
  return sum;
}

/// Returns the number of steps an optimizer has taken up to this one. Skipped steps do not count.
double steps_taken(const WholeStep& step) {
  double taken = static_cast<double>(step.step) + 1;
  for (const log::StepScalars& scalars : step.run->scalars()) {
    if (scalars.step < step.step && scalars.found_inf.value_or(false)) taken -= 1;
  }
  return std::max(taken, 1.0);
}

}  // namespace

Pair::Pair(const WholeStep& step, const Selection& selection, PairNames names)
    : step_(step), names_(std::move(names)), weight_(step.tensors->tensor(names_.weight)) {
  partner_ = load(names_.partner);
  momentum_buffer_ = load(names_.momentum_buffer);
  exp_avg_ = load(names_.exp_avg);
  exp_avg_sq_ = load(names_.exp_avg_sq);
  if (!names_.optimizer) return;
  if (!names_.partner.empty()) scale_ = step.scale_of(selection, names_.partner);
  if (names_.exp_avg.empty()) return;
  if (!names_.step.empty()) counter_ = step.tensors->tensor(names_.step);
  const bool tells = counter_ && counter_->view.count == 1 && first_element(counter_->view) >= 1;
  steps_ = tells ? first_element(counter_->view) : steps_taken(step);
}

TensorPointer Pair::load(const std::string& name) const {
  if (name.empty()) return nullptr;
  TensorPointer tensor = step_.tensors->tensor(name);
  if (!tensor || tensor->view.count == weight_->view.count) return tensor;
  throw std::invalid_argument(fmt::format("Pair: '{}' has {} elements, expected the weight's {}",
                                          name, tensor->view.count, weight_->view.count));
}

void Pair::for_each_tensor(const std::function<void(const log::NamedTensor&)>& visit) const {
  for (const TensorPointer& tensor :
       {weight_, partner_, momentum_buffer_, exp_avg_, exp_avg_sq_, counter_}) {
    if (tensor) visit(*tensor);
  }
}

const log::NamedTensor* Pair::too_narrow() const {
  const auto narrow = [](const TensorPointer& tensor) {
    return tensor && format_of(tensor->view.dtype).width < 16;
  };
  return narrow(weight_) ? weight_.get() : narrow(partner_) ? partner_.get() : nullptr;
}

bool Pair::is_plain() const {
  return names_.source == UpdateSource::gradient && names_.optimizer->is_plain_sgd();
}

OptimizerInputs Pair::inputs() const {
  OptimizerInputs in;
  in.weight = weight_->view;
  if (partner_) in.gradient = partner_->view;
  in.gradient_scale = scale_;
  if (momentum_buffer_) in.first = momentum_buffer_->view;
  if (exp_avg_) in.first = exp_avg_->view;
  if (exp_avg_sq_) in.second = in.largest = exp_avg_sq_->view;
  in.count = weight_->view.count;
  in.steps = steps_;
  return in;
}

bool Pair::uses_gradient() const {
  if (!partner_) return true;
  const TensorPointer update = load("update/" + std::string(underflow::path_of(names_.weight)));
  if (!update) return true;
  const ComputedUpdate computed = compute_update(*names_.optimizer, inputs());
  return update->view.dtype == computed.view().dtype &&
         std::memcmp(update->view.data, computed.view().data, update->view.bytes()) == 0;
}

ComputedUpdate Pair::computed() const {
  if (names_.source == UpdateSource::difference) {
    return subtract(partner_->view, weight_->view);
  }
  return compute_update(*names_.optimizer, inputs());
}

UpdateTable Pair::count(const UpdateOptions& options, const ProgressCallback& tell) const {
  const auto sum = [&](const TensorView& partners, const auto& count) {
    return sum_of_slices<UpdateTable>(weight_->view, partners, kCountSlice, tell, count);
  };
  const auto updates = [&](const TensorView& weights, const TensorView& partners) {
    return count_updates(weights, partners, options);
  };
  const auto differences = [&](const TensorView& weights, const TensorView& after) {
    return count_differences(weights, after, options);
  };
  const auto gradients = [&](const TensorView& weights, const TensorView& partners) {
    return count_sgd_updates(weights, partners, *names_.optimizer->rate, scale_, options);
  };
  if (names_.source == UpdateSource::update) return sum(partner_->view, updates);
  if (names_.source == UpdateSource::difference) return sum(partner_->view, differences);
  if (is_plain()) return sum(partner_->view, gradients);
  const ComputedUpdate update = computed();
  return sum(update.view(), updates);
}

UpdateWhatIf Pair::what_if(const WhatIfOptions& options, const ProgressCallback& tell) const {
  const auto sum = [&](const TensorView& updates) {
    return sum_of_slices<UpdateWhatIf>(weight_->view, updates, kWhatIfSlice, tell,
                                       [&](const TensorView& w, const TensorView& u) {
                                         return halfscope::what_if(w, u, options);
                                       });
  };
  if (names_.source == UpdateSource::update) return sum(partner_->view);
  const ComputedUpdate update = computed();
  return sum(update.view());
}

}  // namespace halfscope::analyzers::updates
