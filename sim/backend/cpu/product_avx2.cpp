// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx2 -mfma on x86-64, and not at all elsewhere; runs where the processor has
// both.
#define HALFSCOPE_EIGEN EigenAvx2
#define HALFSCOPE_PRODUCT_SET avx2
#define HALFSCOPE_PRODUCT_NAME "AVX2"
#include "sim/backend/cpu/product_eigen-inl.hpp"
