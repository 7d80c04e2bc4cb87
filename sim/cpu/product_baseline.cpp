// SPDX-License-Identifier: Apache-2.0
#define HALFSCOPE_EIGEN EigenBaseline
#define HALFSCOPE_PRODUCT_SET baseline
#if defined(__x86_64__)
#define HALFSCOPE_PRODUCT_NAME "SSE2"
#elif defined(__aarch64__)
#define HALFSCOPE_PRODUCT_NAME "NEON"
#else
#define HALFSCOPE_PRODUCT_NAME "baseline"
#endif
#include "sim/cpu/product_eigen-inl.hpp"
