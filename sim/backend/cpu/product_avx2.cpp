// SPDX-License-Identifier: Apache-2.0
// Eigen's products for AVX2 with FMA. Compiled on x86-64 only, with -mavx2 -mfma; called only if
// the processor has both.
#define HALFSCOPE_EIGEN EigenAvx2
#define HALFSCOPE_PRODUCT_SET avx2
#define HALFSCOPE_PRODUCT_NAME "AVX2"
#include "sim/backend/cpu/product_eigen-inl.hpp"
