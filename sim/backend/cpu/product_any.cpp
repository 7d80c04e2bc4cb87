// SPDX-License-Identifier: Apache-2.0
// The products of product_avx2.cpp, to the bit, for processors without AVX2 and FMA: the width of
// vectors and the single rounding of a multiply-add decide Eigen's sums, so it gets numbers that
// have both.
#define EIGEN_DONT_VECTORIZE               // by itself it takes the processor's width
#define EIGEN_VECTORIZE                    // and yet there are vectors,
#define EIGEN_HAS_SINGLE_INSTRUCTION_MADD  // three of rows at once, as with FMA
#define HALFSCOPE_EIGEN EigenAny
#define HALFSCOPE_PRODUCT_SET any
#define HALFSCOPE_PRODUCT_NAME "AVX2 in software"
#define HALFSCOPE_PRODUCT_NUMBER Number
#include "sim/backend/cpu/product_eigen-inl.hpp"
