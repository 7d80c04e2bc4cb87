// SPDX-License-Identifier: Apache-2.0
// The pass over pairs on a device, as the host starts it, and what it leaves. Internal to table/.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halfscope/number/format.hpp"
#include "halfscope/table/count/cuda_parts.hpp"

namespace halfscope::cuda {

/// UpdateCounts without the number of pairs, and outcomes in the order of Outcome.
inline constexpr unsigned kOutcomes = 5;
struct PairCounts {
  unsigned long long zero, nonfinite, rule;
  unsigned long long half[kOutcomes], fused[kOutcomes];
};

/// One cell of the table of binades: in [less][lost], `less` where the fraction of u is below that
/// of w16, which tells the ratio's binade.
struct CellCounts {
  unsigned long long pairs[2][2];
};

// The binades there are. Row 0 is of zero weights.
inline constexpr int kFirstUpdateBinade = -149, kUpdateBinades = 277;
struct WeightBinades {
  int first;
  unsigned rows;  ///< with the one of zeros
};
HALFSCOPE_HD constexpr WeightBinades weight_binades(Format f) {
  const int first = f.min_quantum_exponent();
  return {first, static_cast<unsigned>(f.emax - first + 2)};
}

// Relative errors: at least 2^-198 / 2^128, and not above 2 or so.
inline constexpr int kFirstError = -400;
inline constexpr unsigned kErrors = 416;

/// What the pass works on; all zero at first. cells and errors: null where not asked for.
struct UpdateWork {
  PairCounts* counts;
  CellCounts* cells;           ///< [weight binade][update binade]
  unsigned long long* errors;  ///< from kFirstError on
};

/// f: binary16 or bfloat16.
void count_pairs(const DeviceTensor& weights, const DeviceTensor& updates, Format f,
                 const UpdateWork& work, cudaStream_t stream);

}  // namespace halfscope::cuda
