// SPDX-License-Identifier: Apache-2.0
// The optimizer's rules as torch.optim.SGD and Adam define them (dampening 0, no Nesterov, no
// AMSGrad; weight decay is added to the gradient), in the arithmetic of the weight's dtype: each
// operation is computed in binary32 and rounded to the dtype. For +, -, *, / and the square root
// that equals one rounding of the exact result, since binary32's 24 bits are at least 2p + 2 for
// the p = 11 of binary16 and the 8 of bfloat16 (Figueroa, When is double rounding innocuous?,
// SIGNUM Newsletter 30, 1995).
#include <array>
#include <cmath>

#include "sim/backend/cpu/backend.hpp"
#include "sim/backend/update_constants.hpp"

namespace halfscope::sim::backend::cpu {
namespace {

/// Elements per block; their intermediate values fit the first-level cache.
constexpr std::int64_t kBlock = 1024;

/// A part of a parameter, at most kBlock elements.
struct UpdateBlock {
  std::int64_t count;
  const float* gradient;
  float *weight, *first, *second;  // optimizer state; null if the rule does not use it
};

using Values = std::array<float, kBlock>;

class Arithmetic {
 public:
  Arithmetic(Dtype dtype, std::int64_t count) : dtype_(dtype), count_(count) {}

  /// Writes f(i), rounded to the dtype, to out[i]. f must be a single operation.
  template <class F>
  void operator()(float* out, F f) const {
    for (std::int64_t i = 0; i < count_; ++i) out[i] = f(i);
    round_values(dtype_, out, count_);
  }

 private:
  Dtype dtype_;
  std::int64_t count_;
};

// NOLINTBEGIN(clang-analyzer-core.NullDereference): each rule receives the state that it needs

/// Follows the order of torch.optim.Adam's single-tensor version: exp_avg = exp_avg * beta1 + (1 -
/// beta1) * grad, then exp_avg_sq with ((1 - beta2) * grad) * grad. Writes the value to subtract
/// from the weight to `step`.
void adam(const UpdateConstants& c, const Arithmetic& into, const UpdateBlock& b, const float* g,
          float* step) {
  float *m = b.first, *v = b.second;
  Values t;
  into(m, [&](std::int64_t i) { return c.beta1 * m[i]; });
  into(t.data(), [&](std::int64_t i) { return c.rest1 * g[i]; });
  into(m, [&](std::int64_t i) { return m[i] + t.data()[i]; });
  into(v, [&](std::int64_t i) { return c.beta2 * v[i]; });
  into(t.data(), [&](std::int64_t i) { return c.rest2 * g[i]; });
  into(t.data(), [&](std::int64_t i) { return t.data()[i] * g[i]; });
  into(v, [&](std::int64_t i) { return v[i] + t.data()[i]; });
  into(t.data(), [&](std::int64_t i) { return std::sqrt(v[i]); });
  into(t.data(), [&](std::int64_t i) { return t.data()[i] / c.root_correction; });
  into(t.data(), [&](std::int64_t i) { return t.data()[i] + c.epsilon; });
  into(step, [&](std::int64_t i) { return c.adam_rate * m[i]; });
  into(step, [&](std::int64_t i) { return step[i] / t.data()[i]; });
}

/// Updates the state and writes the value to subtract from the weight to `step`.
void step_of(const UpdateConstants& c, const Arithmetic& into, const UpdateBlock& b, float* step) {
  Values g, t;
  float* decayed = t.data();
  into(g.data(), [&](std::int64_t i) { return b.gradient[i] * c.unscale; });
  if (c.decay != 0) {
    into(decayed, [&](std::int64_t i) { return c.decay * b.weight[i]; });
    into(g.data(), [&](std::int64_t i) { return g.data()[i] + decayed[i]; });
  }
  switch (c.kind) {
    case UpdateRule::Kind::sgd:
      into(step, [&](std::int64_t i) { return c.rate * g.data()[i]; });
      return;
    case UpdateRule::Kind::momentum:
      into(b.first, [&](std::int64_t i) { return c.momentum * b.first[i]; });
      into(b.first, [&](std::int64_t i) { return b.first[i] + g.data()[i]; });
      into(step, [&](std::int64_t i) { return c.rate * b.first[i]; });
      return;
    case UpdateRule::Kind::adam: adam(c, into, b, g.data(), step); return;
  }
}

// NOLINTEND(clang-analyzer-core.NullDereference)

}  // namespace

void CpuBackend::update(const UpdateRule& rule, const Tensor& gradient, double unscale,
                        Tensor& weight, std::span<Tensor> state, Tensor& delta) {
  require_update(rule, gradient, weight, state, delta);
  const UpdateConstants constants = update_constants(rule, weight.dtype, unscale);
  const float* g = data(gradient);
  float *w = data(weight), *change = delta ? data(delta) : nullptr,
        *first_state = state.empty() ? nullptr : data(state[0]),
        *second_state = state.size() < 2 ? nullptr : data(state[1]);
  parallel_parts(weight.size(), kBlock, [&](std::int64_t first, std::int64_t count) {
    const UpdateBlock block{count, g + first, w + first,
                            first_state ? first_state + first : nullptr,
                            second_state ? second_state + first : nullptr};
    const Arithmetic into(weight.dtype, count);
    Values step;
    step_of(constants, into, block, step.data());
    into(block.weight, [&](std::int64_t i) { return block.weight[i] - step.data()[i]; });
    if (change == nullptr) return;
    for (std::int64_t i = 0; i < count; ++i) change[first + i] = -step.data()[i];
    round_values(delta.dtype, change + first, count);
  });
}

}  // namespace halfscope::sim::backend::cpu
