// SPDX-License-Identifier: Apache-2.0
// The loops one writes by hand for a histogram of exponents, as plain C: what bench_table measures
// itself against. No signs, no cuts, no extremes: less than a binade table holds.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace histogram_loops {

/// Counts by exponent field; four sub-tables, so that equal neighbours do not wait for each other.
void binary32(const uint32_t* values, size_t n, uint64_t counts[256]);
void bfloat16(const uint16_t* values, size_t n, uint64_t counts[256]);
void binary16(const uint16_t* values, size_t n, uint64_t counts[32]);

}  // namespace histogram_loops
