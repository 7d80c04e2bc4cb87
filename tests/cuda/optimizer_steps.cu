// SPDX-License-Identifier: Apache-2.0
#include "cuda/optimizer_steps.hpp"

#include <cmath>

#include "cuda/device.hpp"
#include "halfscope/device/launch.hpp"

namespace optimizer_steps {
namespace {

using halfscope::optimizer::Algorithm;
using halfscope::optimizer::Settings;

constexpr unsigned kThreads = 128;

/// Settings as a kernel takes them, and numbers that Python computes.
struct Given {
  Row row;
  Settings s;
  float steps;
  double step_size, root2;  ///< lr / (1 - beta1^t), sqrt(1 - beta2^t)
};

__device__ float narrow(double x) { return static_cast<float>(x); }

__device__ float larger(float a, float b) { return a != a || b != b ? a + b : a > b ? a : b; }

/// Moments by torch.optim's operations: lerp_, mul_, addcmul_. Returns the decayed weight.
__device__ float moments(const Given& given, Element& e) {
  const Settings& s = given.s;
  float w = e.weight, g = s.maximize ? -e.gradient : e.gradient;
  const bool decoupled = s.algorithm == Algorithm::adamw;
  if (s.weight_decay != 0 && decoupled) w = __fmul_rn(w, narrow(1 - s.lr * s.weight_decay));
  if (s.weight_decay != 0 && !decoupled) g = __fmaf_rn(narrow(s.weight_decay), w, g);
  const float share = narrow(1 - s.beta1), apart = __fsub_rn(g, e.first);
  e.first = share < 0.5f ? __fmaf_rn(share, apart, e.first)
                         : __fmaf_rn(-apart, __fsub_rn(1.0f, share), g);
  e.second = __fmul_rn(e.second, narrow(s.beta2));
  e.second = __fmaf_rn(narrow(1 - s.beta2), __fmul_rn(g, g), e.second);
  if (s.amsgrad) e.largest = larger(e.largest, e.second);
  return w;
}

__device__ void operations(const Given& given, Element& e, float power1, float power2) {
  const Settings& s = given.s;
  const float w = moments(given, e), eps = narrow(s.eps), lr = narrow(s.lr);
  const float root = __fsqrt_rn(s.amsgrad ? e.largest : e.second);
  const float one = __fsub_rn(1.0f, power1), root2 = __fsqrt_rn(__fsub_rn(1.0f, power2));
  if (given.row == Row::single || given.row == Row::foreach) {
    const float by = narrow(given.root2);
    const float d =
        given.row == Row::single ? __fmul_rn(root, __fdiv_rn(1.0f, by)) : __fdiv_rn(root, by);
    const float quotient = __fdiv_rn(e.first, __fadd_rn(d, eps));
    e.weight = __fmaf_rn(narrow(-given.step_size), quotient, w);
    return;
  }
  float d = 0;
  if (given.row == Row::capturable) {
    const float negative = -__fmul_rn(__fdiv_rn(1.0f, one), lr);
    d = __fadd_rn(__fdiv_rn(root, __fmul_rn(root2, negative)),
                  __fmul_rn(__fdiv_rn(1.0f, negative), eps));
  } else {
    const float negative = __fdiv_rn(1.0f, __fdiv_rn(-one, lr));
    d = __fdiv_rn(__fadd_rn(__fdiv_rn(root, root2), eps), negative);
  }
  e.weight = __fadd_rn(w, __fdiv_rn(e.first, d));
}

__device__ void fused(const Given& given, Element& e, float power1, float power2) {
  const Settings& s = given.s;
  const float beta1 = narrow(s.beta1), beta2 = narrow(s.beta2), decay = narrow(s.weight_decay);
  float w = e.weight, g = s.maximize ? -e.gradient : e.gradient;
  if (decay != 0 && s.algorithm == Algorithm::adam) g = __fmaf_rn(w, decay, g);
  if (decay != 0 && s.algorithm == Algorithm::adamw) {
    w = __fmaf_rn(-__fmul_rn(narrow(s.lr), decay), w, w);
  }
  const float square = __fmul_rn(g, g);
  e.first = __fmaf_rn(beta1, e.first, __fmaf_rn(-beta1, g, g));
  e.second = __fmaf_rn(beta2, e.second, __fmaf_rn(-beta2, square, square));
  if (s.amsgrad) e.largest = larger(e.largest, e.second);
  const float root2 = __fsqrt_rn(__fsub_rn(1.0f, power2));
  const float root = __fsqrt_rn(s.amsgrad ? e.largest : e.second);
  const float d = __fadd_rn(__fdiv_rn(root, root2), narrow(s.eps));
  const float size = __fdiv_rn(narrow(s.lr), __fsub_rn(1.0f, power1));
  e.weight = __fsub_rn(w, __fdiv_rn(__fmul_rn(size, e.first), d));
}

/// Numbers are binary64, and so are the expressions with one.
__device__ void fused_2025(const Given& given, Element& e, double power1, double power2) {
  const Settings& s = given.s;
  float w = e.weight, g = s.maximize ? -e.gradient : e.gradient;
  if (s.weight_decay != 0 && s.algorithm == Algorithm::adam) {
    g = narrow(__fma_rn(double(w), s.weight_decay, double(g)));
  }
  if (s.weight_decay != 0 && s.algorithm == Algorithm::adamw) {
    w = narrow(__fma_rn(-(s.lr * s.weight_decay), double(w), double(w)));
  }
  e.first = narrow(__fma_rn(s.beta1, double(e.first), __dmul_rn(1 - s.beta1, g)));
  const double squared = __dmul_rn(__dmul_rn(1 - s.beta2, g), g);
  e.second = narrow(__fma_rn(s.beta2, double(e.second), squared));
  if (s.amsgrad) e.largest = larger(e.largest, e.second);
  const float size = narrow(s.lr / double(narrow(1 - power1)));
  const float root2 = __fsqrt_rn(narrow(1 - power2));
  const float root = __fsqrt_rn(s.amsgrad ? e.largest : e.second);
  const float d = narrow(__dadd_rn(double(__fdiv_rn(root, root2)), s.eps));
  e.weight = __fsub_rn(w, __fdiv_rn(__fmul_rn(size, e.first), d));
}

/// torch.optim's operations, or FusedSgdKernel.cu's in binary64.
__device__ void sgd(const Given& given, Element& e) {
  const Settings& s = given.s;
  if (given.row == Row::fused) {
    const float g = narrow(__fma_rn(s.weight_decay, double(e.weight), double(e.gradient)));
    const double buffer = __fma_rn(s.momentum, double(e.first), __dmul_rn(1 - s.dampening, g));
    e.first = narrow(buffer);
    float way = narrow(s.nesterov ? __fma_rn(s.momentum, buffer, double(g)) : buffer);
    if (s.maximize) way = -way;
    e.weight = narrow(__fma_rn(-s.lr, double(way), double(e.weight)));
    return;
  }
  float g = s.maximize ? -e.gradient : e.gradient;
  if (s.weight_decay != 0) g = __fmaf_rn(narrow(s.weight_decay), e.weight, g);
  e.first = __fmaf_rn(narrow(1 - s.dampening), g, __fmul_rn(e.first, narrow(s.momentum)));
  const float way = s.nesterov ? __fmaf_rn(narrow(s.momentum), e.first, g) : e.first;
  e.weight = __fmaf_rn(narrow(-s.lr), way, e.weight);
}

__global__ void run_step(Given given, Element* elements, std::size_t count, float* powers) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float power1 = powf(narrow(given.s.beta1), given.steps);
  const float power2 = powf(narrow(given.s.beta2), given.steps);
  if (i == 0) powers[0] = power1, powers[1] = power2;
  Element e = elements[i];
  if (given.s.algorithm == Algorithm::sgd) {
    sgd(given, e);
  } else if (given.row == Row::fused) {
    fused(given, e, power1, power2);
  } else if (given.row == Row::fused_2025) {
    fused_2025(given, e, pow(given.s.beta1, double(given.steps)),
               pow(given.s.beta2, double(given.steps)));
  } else {
    operations(given, e, power1, power2);
  }
  elements[i] = e;
}

}  // namespace

std::vector<Element> on_device(Row row, const Settings& settings, float steps,
                               const std::vector<Element>& elements, float (&powers)[2]) {
  const Given given = {row, settings, steps, settings.lr / (1 - std::pow(settings.beta1, steps)),
                       std::sqrt(1 - std::pow(settings.beta2, steps))};
  const auto values = device::copy_of(elements);
  const auto found = device::allocate<float>(2);
  halfscope::cuda::launch("run_step", run_step,
                          {device::blocks_for(elements.size(), kThreads), kThreads}, nullptr, given,
                          values.get(), elements.size(), found.get());
  const std::vector<float> numbers = device::fetch(found.get(), 2);
  powers[0] = numbers[0], powers[1] = numbers[1];
  return device::fetch(values.get(), elements.size());
}

}  // namespace optimizer_steps
