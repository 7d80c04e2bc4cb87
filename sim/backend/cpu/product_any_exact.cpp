// SPDX-License-Identifier: Apache-2.0
// As product_any.cpp, and many times as fast, where no product of two elements is rounded: there a
// multiplication and an addition are a fused multiply-add.
#define HALFSCOPE_EXACT_PRODUCTS
#define EIGEN_DONT_VECTORIZE
#define EIGEN_VECTORIZE
#define EIGEN_HAS_SINGLE_INSTRUCTION_MADD
#define HALFSCOPE_EIGEN EigenAnyExact
#define HALFSCOPE_PRODUCT_SET any_exact
#define HALFSCOPE_PRODUCT_NAME "AVX2 in software, exact products"
#define HALFSCOPE_PRODUCT_NUMBER Number
#include "sim/backend/cpu/product_eigen-inl.hpp"
