// SPDX-License-Identifier: Apache-2.0
// The interface of the device's pass over pairs to the host, and its results. Internal to table/.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halfscope/number/format.hpp"
#include "halfscope/table/count/cuda_parts.hpp"

namespace halfscope::cuda {

/// A piece of a weight and its update.
struct PairSlice {
  const void *weights, *updates;
  unsigned count;
  unsigned first_part;  ///< number of its first part in the launch
  Dtype weight_dtype, update_dtype;
  unsigned tensor;  ///< index in the list
};

/// Counts of a part's pairs; outcomes in the order of Outcome. The applied ones are not read.
inline constexpr unsigned kOutcomes = 5;
struct PairCounts {
  unsigned zero, nonfinite, rule;
  unsigned half[kOutcomes], fused[kOutcomes];
};
inline constexpr unsigned kPairElements = 1u << 15;  ///< pairs of a part

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

/// The work of a launch, and the memory for its results.
struct UpdateWork {
  Work<PairSlice> work;
  PairCounts* parts;  ///< pinned memory, one per part

  // Zeroed device memory; null if distributions are not requested.
  CellCounts* cells;           ///< [tensor][weight binade][update binade]
  unsigned long long* errors;  ///< [tensor], from kFirstError on
};

/// f: binary16 or bfloat16. Needs everything but work.work.
void count_pairs(const WorkList<PairSlice>& list, Format f, UpdateWork work, ChunkedMemory& pinned,
                 cudaStream_t stream);

}  // namespace halfscope::cuda
