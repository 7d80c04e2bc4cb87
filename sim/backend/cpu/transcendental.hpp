// SPDX-License-Identifier: Apache-2.0
// exp, tanh and the logistic function of arrays in binary32, within a few units in the last place.
// The bits of an element depend on its value alone: not on its place, the alignment, the number of
// threads or, but at the far ends, the C library.
#pragma once

#include <cstdint>

namespace halfscope::sim::backend::cpu {

// `out` may be `in`.
void exponentials(const float* in, float* out, std::int64_t count);
void hyperbolic_tangents(const float* in, float* out, std::int64_t count);
void logistic_functions(const float* in, float* out, std::int64_t count);

}  // namespace halfscope::sim::backend::cpu
