// SPDX-License-Identifier: Apache-2.0
// Compiled with -O3. n must be a multiple of 4.
#include "bench/histogram_loops.hpp"

namespace histogram_loops {
namespace {

template <typename Word, int kShift, int kFields>
void count(const Word* values, size_t n, uint64_t* counts) {
  uint64_t table[4][kFields] = {};
  for (size_t i = 0; i + 4 <= n; i += 4) {
    for (size_t k = 0; k < 4; ++k) ++table[k][(values[i + k] >> kShift) & (kFields - 1)];
  }
  for (int field = 0; field < kFields; ++field) {
    counts[field] = table[0][field] + table[1][field] + table[2][field] + table[3][field];
  }
}

}  // namespace

void binary32(const uint32_t* values, size_t n, uint64_t counts[256]) {
  count<uint32_t, 23, 256>(values, n, counts);
}

void bfloat16(const uint16_t* values, size_t n, uint64_t counts[256]) {
  count<uint16_t, 7, 256>(values, n, counts);
}

void binary16(const uint16_t* values, size_t n, uint64_t counts[32]) {
  count<uint16_t, 10, 32>(values, n, counts);
}

}  // namespace histogram_loops
