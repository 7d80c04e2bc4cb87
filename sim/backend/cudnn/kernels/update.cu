// SPDX-License-Identifier: Apache-2.0
// The optimizer's rules, with every operation rounded to the weight's type. The results have the
// CPU backend's bits. Compiled with --fmad=false, so that operations are not fused.
#include <cmath>

#include "sim/backend/cudnn/kernels/element.hpp"
#include "sim/backend/cudnn/kernels/kernels.hpp"

namespace halfscope::sim::backend::cudnn::kernels {
namespace {

using cuda::launch;

/// Follows the order of torch.optim.Adam's single-tensor version.
template <class W>
__device__ float adam_step(const UpdateConstants& c, float g, W& first, W& second) {
  const float m = rounded<W>(rounded<W>(c.beta1 * wide(first)) + rounded<W>(c.rest1 * g));
  const float squared = rounded<W>(rounded<W>(c.rest2 * g) * g);
  const float v = rounded<W>(rounded<W>(c.beta2 * wide(second)) + squared);
  first = narrow<W>(m);
  second = narrow<W>(v);
  const float root = rounded<W>(rounded<W>(sqrtf(v)) / c.root_correction);
  return rounded<W>(rounded<W>(c.adam_rate * m) / rounded<W>(root + c.epsilon));
}

template <class W>
__device__ float step_of(const UpdateConstants& c, float gradient, float weight, W* first,
                         W* second) {
  float g = rounded<W>(gradient * c.unscale);
  if (c.decay != 0) g = rounded<W>(g + rounded<W>(c.decay * weight));
  if (c.kind == UpdateRule::Kind::adam) return adam_step(c, g, *first, *second);
  if (c.kind == UpdateRule::Kind::sgd) return rounded<W>(c.rate * g);
  const float velocity = rounded<W>(rounded<W>(c.momentum * wide(*first)) + g);
  *first = narrow<W>(velocity);
  return rounded<W>(c.rate * velocity);
}

template <class G, class W>
__global__ void update_kernel(UpdateConstants c, const G* gradient, W* weight, W* first, W* second,
                              W* delta, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const float before = wide(weight[i]);
    const float step = step_of(c, wide(gradient[i]), before, first == nullptr ? nullptr : first + i,
                               second == nullptr ? nullptr : second + i);
    weight[i] = narrow<W>(before - step);
    if (delta != nullptr) delta[i] = narrow<W>(-step);
  }
}

}  // namespace

void update(const UpdateConstants& constants, const UpdateMemory& memory, std::int64_t count,
            cudaStream_t stream) {
  with_type(memory.gradient.dtype, [&]<class G>(G) {
    with_type(memory.weight.dtype, [&]<class W>(W) {
      launch("update", update_kernel<G, W>, {.blocks = blocks_of(count)}, stream, constants,
             static_cast<const G*>(memory.gradient.data), static_cast<W*>(memory.weight.data),
             static_cast<W*>(memory.first_state), static_cast<W*>(memory.second_state),
             static_cast<W*>(memory.delta.data), count);
    });
  });
}

}  // namespace halfscope::sim::backend::cudnn::kernels
