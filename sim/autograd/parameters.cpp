// SPDX-License-Identifier: Apache-2.0
#include "sim/autograd/parameters.hpp"

#include <cmath>
#include <stdexcept>

#include "sim/backend/random.hpp"

namespace halfscope::sim::autograd {
namespace {

std::vector<float> initial_values(const std::string& name, std::int64_t count, Initial initial,
                                  std::int64_t fan_in, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count),
                            initial == Initial::ones ? 1.0F : 0.0F);
  if (initial == Initial::zeros || initial == Initial::ones) return values;
  backend::Random random(seed, name);
  if (initial == Initial::normal) {
    for (float& value : values) value = static_cast<float>(random.normal());
    return values;
  }
  // kaiming_uniform with a = sqrt(5) and uniform_fan_in have the same bound.
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  for (float& value : values) value = static_cast<float>(random.uniform(-bound, bound));
  return values;
}

}  // namespace

Parameters::Parameters(backend::Backend& backend, const backend::Precision& precision,
                       std::uint64_t seed)
    : backend_(backend), precision_(precision), seed_(seed) {}

Parameter& Parameters::at(const std::string& name, const backend::Shape& shape, Initial initial,
                          std::int64_t fan_in, bool wide) {
  for (const auto& parameter : list_) {
    if (parameter->name != name) continue;
    if (parameter->weight.shape != shape) {
      throw std::invalid_argument("parameter " + name + " has another shape already");
    }
    return *parameter;
  }
  auto made = std::make_unique<Parameter>();
  made->name = name;
  const auto values = initial_values(name, backend::elements(shape), initial, fan_in, seed_);
  const Dtype dtype = wide ? Dtype::f32 : precision_.tensors;
  made->weight = backend_.make(shape, dtype);
  made->gradient = backend_.make(shape, dtype);
  if (precision_.master && !wide) {
    made->master = backend_.make(shape, Dtype::f32);
    backend_.set(made->master, values);
    backend_.copy(made->master, made->weight);
  } else {
    backend_.set(made->weight, values);
  }
  list_.push_back(std::move(made));
  return *list_.back();
}

Parameter& Parameters::statistic(const std::string& name, const backend::Shape& shape,
                                 Initial initial) {
  Parameter& made = at(name, shape, initial, 1, true);
  made.trained = false;
  made.gradient = {};
  return made;
}

std::vector<Parameter*> Parameters::all() {
  std::vector<Parameter*> found;
  for (const auto& parameter : list_) found.push_back(parameter.get());
  return found;
}

std::vector<Parameter*> Parameters::trained() {
  std::vector<Parameter*> found;
  for (const auto& parameter : list_) {
    if (parameter->trained) found.push_back(parameter.get());
  }
  return found;
}

}  // namespace halfscope::sim::autograd
