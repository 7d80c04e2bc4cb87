// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/reference/backend.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/backend/reference/sums.hpp"

namespace halfscope::sim::backend::reference {

std::span<double> values(const Tensor& tensor) {
  auto* reals = dynamic_cast<Reals*>(tensor.storage.get());
  if (reals == nullptr) {
    throw std::invalid_argument("the reference backend was given a tensor that is not its own");
  }
  return reals->values;
}

std::string ReferenceBackend::describe() const {
  return "reference: binary64, compensated sums, no rounding between operations";
}

Tensor ReferenceBackend::make(const Shape& shape, Dtype dtype) {
  return {shape, dtype, std::make_shared<Reals>(static_cast<std::size_t>(elements(shape)))};
}

void ReferenceBackend::set(Tensor& to, std::span<const float> from) {
  const std::span<double> out = values(to);
  if (from.size() != out.size()) throw std::invalid_argument("set: another number of values");
  std::copy(from.begin(), from.end(), out.begin());
}

std::vector<float> ReferenceBackend::get(const Tensor& from) {
  const std::span<const double> in = values(from);
  std::vector<float> out(in.size());
  std::transform(in.begin(), in.end(), out.begin(), [](double x) { return static_cast<float>(x); });
  return out;
}

void ReferenceBackend::copy(const Tensor& from, Tensor& to) {
  const std::span<const double> in = values(from);
  const std::span<double> out = values(to);
  if (in.size() != out.size()) throw std::invalid_argument("copy: another number of values");
  if (in.data() != out.data()) std::copy(in.begin(), in.end(), out.begin());
}

void ReferenceBackend::fill(Tensor& to, float value) { std::ranges::fill(values(to), value); }

GradientFacts ReferenceBackend::facts(std::span<const Tensor> gradients) {
  GradientFacts facts;
  Sum squares;
  bool nan = false;
  for (const Tensor& gradient : gradients) {
    for (const double x : values(gradient)) {
      nan = nan || std::isnan(x);
      facts.nonfinite = facts.nonfinite || !std::isfinite(x);
      if (std::isfinite(x)) squares.add_product(x, x);
      facts.max_abs = std::max(facts.max_abs, std::abs(x));  // keeps its value if x is NaN
    }
  }
  facts.sum_squares = squares.value();
  if (nan) facts.max_abs = std::numeric_limits<double>::quiet_NaN();
  return facts;
}

BinadeTable ReferenceBackend::count(const Tensor& tensor) {
  return count_binades(view_of(std::span<const double>(values(tensor))));
}

Moments ReferenceBackend::moments(const Tensor& tensor) {
  return halfscope::moments(view_of(std::span<const double>(values(tensor))));
}

}  // namespace halfscope::sim::backend::reference

std::unique_ptr<halfscope::sim::backend::Backend>
halfscope::sim::backend::make_reference_backend() {
  return std::make_unique<reference::ReferenceBackend>();
}
