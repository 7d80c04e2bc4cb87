// SPDX-License-Identifier: Apache-2.0
// How an operation of the backends is checked: its gradients against finite differences of the
// reference's forward pass, the processor's results against the reference's, its bits on other
// numbers of threads, and its narrow results against its binary32 results rounded once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/array/array.hpp"
#include "sim/backend/backend.hpp"
#include "sim/backend/reference/backend.hpp"

namespace sim_test {

using namespace halfscope;
using namespace halfscope::sim;
using Tensors = std::vector<backend::Tensor>;
using Floats = std::vector<float>;

/// What goes into an operation; `wide`: binary32 in every mode.
struct Input {
  backend::Shape shape;
  Floats values;
  bool wide = false;
};

inline Floats normal(std::int64_t count, std::uint64_t seed, double deviation = 1,
                     double mean = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> draw(mean, deviation);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(draw(random));
  return values;
}

inline Input normal_input(const backend::Shape& shape, std::uint64_t seed, double deviation = 1,
                          double mean = 0) {
  return {shape, normal(backend::elements(shape), seed, deviation, mean)};
}

/// Distinct values in random order, none nearer than 0.02 to another or to zero.
inline Input distinct_input(const backend::Shape& shape, std::uint64_t seed) {
  Floats values(static_cast<std::size_t>(backend::elements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (static_cast<float>(i) - static_cast<float>(values.size() / 2) + 0.5F) * 0.04F;
  }
  std::shuffle(values.begin(), values.end(), std::mt19937_64(seed));
  return {shape, values};
}

inline Floats rounded(Dtype dtype, Floats values) {
  if (dtype != Dtype::f32) quantise(format_of(dtype), values);
  return values;
}

/// The forward pass gives outputs; the backward pass the gradients of the first inputs, from those
/// of the outputs. Both make their tensors, narrow ones of the given dtype.
struct Operation {
  std::vector<Input> inputs;
  std::function<Tensors(backend::Backend&, Dtype, Tensors& in)> forward;
  std::function<Tensors(backend::Backend&, Dtype, Tensors& in, Tensors& out, Tensors& up)> backward;
};

inline backend::Tensor tensor_of(backend::Backend& backend, const backend::Shape& shape,
                                 Dtype dtype, std::span<const float> values) {
  backend::Tensor tensor = backend.make(shape, dtype);
  backend.set(tensor, values);
  return tensor;
}

inline Tensors inputs_of(backend::Backend& backend, const Operation& operation, Dtype dtype,
                         Dtype values_of) {
  Tensors in;
  for (const Input& input : operation.inputs) {
    in.push_back(tensor_of(backend, input.shape, input.wide ? Dtype::f32 : dtype,
                           input.wide ? input.values : rounded(values_of, input.values)));
  }
  return in;
}

/// Gradients that arrive: random, the same for every backend.
inline Tensors arriving(backend::Backend& backend, const Tensors& out, Dtype values_of) {
  Tensors up;
  for (std::size_t i = 0; i < out.size(); ++i) {
    up.push_back(tensor_of(backend, out[i].shape, out[i].dtype,
                           rounded(values_of, normal(out[i].size(), 1000 + i))));
  }
  return up;
}

struct Results {
  Tensors forward, backward;
};

/// In tensors of `dtype` that hold values of `values_of`.
inline Results run(backend::Backend& backend, const Operation& operation, Dtype dtype,
                   Dtype values_of) {
  Tensors in = inputs_of(backend, operation, dtype, values_of);
  Results results{operation.forward(backend, dtype, in), {}};
  Tensors up = arriving(backend, results.forward, values_of);
  results.backward = operation.backward(backend, dtype, in, results.forward, up);
  return results;
}

/// |a - b| / |b| in the Euclidean norm.
template <class A>
double relative_error(const A& a, std::span<const double> b) {
  REQUIRE(std::size(a) == b.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    size += b[i] * b[i];
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

/// Slopes of a function of the values of a tensor of the reference.
inline std::vector<double> finite_differences(std::span<double> x,
                                              const std::function<double()>& f) {
  constexpr double kStep = 0x1p-13;
  std::vector<double> slopes;
  for (double& value : x) {
    const double at = value;
    value = at + kStep;
    const double above = f();
    value = at - kStep;
    slopes.push_back((above - f()) / (2 * kStep));
    value = at;
  }
  return slopes;
}

/// The sum of outputs times what arrives as their gradients has the gradients that the backward
/// pass says.
inline void check_finite_differences(const Operation& operation) {
  backend::reference::ReferenceBackend backend;
  Tensors in = inputs_of(backend, operation, Dtype::f32, Dtype::f32);
  Tensors out = operation.forward(backend, Dtype::f32, in);
  Tensors up = arriving(backend, out, Dtype::f32);
  const auto objective = [&] {
    const Tensors now = operation.forward(backend, Dtype::f32, in);
    double sum = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      for (std::size_t j = 0; j < backend::reference::values(now[i]).size(); ++j) {
        sum += backend::reference::values(now[i])[j] * backend::reference::values(up[i])[j];
      }
    }
    return sum;
  };
  std::vector<std::vector<double>> slopes;
  const std::size_t gradients = run(backend, operation, Dtype::f32, Dtype::f32).backward.size();
  for (std::size_t i = 0; i < gradients; ++i) {
    slopes.push_back(finite_differences(backend::reference::values(in[i]), objective));
  }
  const Tensors found = operation.backward(backend, Dtype::f32, in, out, up);
  for (std::size_t i = 0; i < gradients; ++i) {
    INFO("gradient of input " << i);
    CHECK(relative_error(backend::reference::values(found[i]), slopes[i]) < 1e-6);
  }
}

inline void check_same_bits(backend::Backend& a, const Tensors& of_a, backend::Backend& b,
                            const Tensors& of_b) {
  REQUIRE(of_a.size() == of_b.size());
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    const Floats x = a.get(of_a[i]), y = rounded(of_a[i].dtype, b.get(of_b[i]));
    REQUIRE(x.size() == y.size());
    std::size_t different = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      different += std::bit_cast<std::uint32_t>(x[j]) != std::bit_cast<std::uint32_t>(y[j]);
    }
    INFO("result " << i);
    CHECK(different == 0);
  }
}

inline void check_cpu(const Operation& operation) {
  backend::reference::ReferenceBackend exact;
  const auto one = backend::make_cpu_backend(backend::Accumulation::fp32, 1),
             two = backend::make_cpu_backend(backend::Accumulation::fp32, 2);
  const Results wanted = run(exact, operation, Dtype::f32, Dtype::f32),
                found = run(*one, operation, Dtype::f32, Dtype::f32),
                again = run(*two, operation, Dtype::f32, Dtype::f32);
  const auto compare = [&](const Tensors& a, const Tensors& b) {
    for (std::size_t i = 0; i < b.size(); ++i) {
      INFO("result " << i);
      CHECK(relative_error(one->get(a[i]), backend::reference::values(b[i])) < 1e-5);
    }
  };
  compare(found.forward, wanted.forward);
  compare(found.backward, wanted.backward);
  check_same_bits(*two, again.forward, *one, found.forward);
  check_same_bits(*two, again.backward, *one, found.backward);

  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    INFO("narrow: " << name_of(dtype));
    const Results narrow = run(*two, operation, dtype, dtype),
                  wide = run(*one, operation, Dtype::f32, dtype);
    check_same_bits(*two, narrow.forward, *one, wide.forward);
    check_same_bits(*two, narrow.backward, *one, wide.backward);
  }
}

/// Everything; `large` has the shapes that go through several parts and threads.
inline void check(const Operation& small, const Operation& large) {
  check_finite_differences(small);
  check_cpu(small);
  check_cpu(large);
}

}  // namespace sim_test
