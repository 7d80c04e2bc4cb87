// SPDX-License-Identifier: Apache-2.0
// Hand-written loops in plain C for a histogram of exponents, as a comparison for bench_table. They
// count less than a binade table: no signs, no position within a binade, no extremes.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace histogram_loops {

/// Counts values by exponent field. Four partial histograms avoid waiting for equal neighbours.
void binary32(const uint32_t* values, size_t n, uint64_t counts[256]);
void bfloat16(const uint16_t* values, size_t n, uint64_t counts[256]);
void binary16(const uint16_t* values, size_t n, uint64_t counts[32]);

}  // namespace histogram_loops
