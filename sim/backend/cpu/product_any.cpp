// SPDX-License-Identifier: Apache-2.0
// The same bits as product_avx2.cpp, for processors without AVX2 and FMA. Eigen's sums depend on
// the width of vectors and on the single rounding of a multiply-add, so its numbers emulate both.
#define EIGEN_DONT_VECTORIZE               // Eigen would select the processor's vector width
#define EIGEN_VECTORIZE                    // enables vectors of our number type
#define EIGEN_HAS_SINGLE_INSTRUCTION_MADD  // three vectors of rows at once, as with FMA
#define HALFSCOPE_EIGEN EigenAny
#define HALFSCOPE_PRODUCT_SET any
#define HALFSCOPE_PRODUCT_NAME "AVX2 in software"
#define HALFSCOPE_PRODUCT_NUMBER Number
#include "sim/backend/cpu/product_eigen-inl.hpp"
