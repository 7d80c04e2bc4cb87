// SPDX-License-Identifier: Apache-2.0
// A much faster version of product_any.cpp for matrices whose elements' products are all exact.
// Then a multiplication and an addition equal a fused multiply-add.
#define HALFSCOPE_EXACT_PRODUCTS
#define EIGEN_DONT_VECTORIZE
#define EIGEN_VECTORIZE
#define EIGEN_HAS_SINGLE_INSTRUCTION_MADD
#define HALFSCOPE_EIGEN EigenAnyExact
#define HALFSCOPE_PRODUCT_SET any_exact
#define HALFSCOPE_PRODUCT_NAME "AVX2 in software, exact products"
#define HALFSCOPE_PRODUCT_NUMBER Number
#include "sim/backend/cpu/product_eigen-inl.hpp"
