// SPDX-License-Identifier: Apache-2.0
// exp, tanh and the logistic function of binary32 arrays, within a few units in the last place. The
// bits of a result depend on its argument alone: not on its position, the alignment or the number
// of threads. At very large and very small arguments they depend on the C library.
#pragma once

#include <cstdint>

namespace halfscope::sim::backend::cpu {

// `out` may be `in`.
void exponentials(const float* in, float* out, std::int64_t count);
void hyperbolic_tangents(const float* in, float* out, std::int64_t count);
void logistic_functions(const float* in, float* out, std::int64_t count);

}  // namespace halfscope::sim::backend::cpu
