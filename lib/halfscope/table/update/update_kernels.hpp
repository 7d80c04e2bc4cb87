// SPDX-License-Identifier: Apache-2.0
// The interface of the device's pass over pairs to the host, and its results. Internal to table/.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halfscope/number/format.hpp"
#include "halfscope/table/count/cuda_parts.hpp"

namespace halfscope::cuda {

/// UpdateCounts without the number of pairs; outcomes in the order of Outcome.
inline constexpr unsigned kOutcomes = 5;
struct PairCounts {
  unsigned long long zero, nonfinite, rule;
  unsigned long long half[kOutcomes], fused[kOutcomes];
};

/// A cell of the binade grid, as [less][lost]: `less` is 1 if the fraction of u is below the
/// fraction of w16, which determines the ratio's binade.
struct CellCounts {
  unsigned long long pairs[2][2];
};

// The range of binades. Row 0 is for zero weights.
inline constexpr int kFirstUpdateBinade = -149, kUpdateBinades = 277;
struct WeightBinades {
  int first;
  unsigned rows;  ///< including the row of zeros
};
HALFSCOPE_HD constexpr WeightBinades weight_binades(Format f) {
  const int first = f.min_quantum_exponent();
  return {first, static_cast<unsigned>(f.emax - first + 2)};
}

// Relative errors: at least 2^-198 / 2^128, and at most about 2.
inline constexpr int kFirstError = -400;
inline constexpr unsigned kErrors = 416;

/// Arrays for the pass, all initially zero. cells and errors: null if not requested.
struct UpdateWork {
  PairCounts* counts;
  CellCounts* cells;           ///< [weight binade][update binade]
  unsigned long long* errors;  ///< from kFirstError on
};

/// f: binary16 or bfloat16.
void count_pairs(const DeviceTensor& weights, const DeviceTensor& updates, Format f,
                 const UpdateWork& work, cudaStream_t stream);

}  // namespace halfscope::cuda
