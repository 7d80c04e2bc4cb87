// SPDX-License-Identifier: Apache-2.0
// The two counting passes' interface to the host. Internal to table/.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halfscope/table/count/cuda_rows.hpp"

namespace halfscope::cuda {

/// A slice whose table is counted.
struct TableSlice : Slice {
  RowRange range;      ///< its rows
  std::size_t rows;    ///< index of the first row in the arrays of rows
  std::size_t tensor;  ///< index of its tensor
};

/// The work of a launch, and the memory for its results. The block that completes a slice writes
/// its result.
struct CountWork {
  Work<TableSlice> work;
  CutFractions cuts;
  SliceResult* results;    ///< pinned memory, one per slice
  RowCounts* result_rows;  ///< pinned memory: the result's rows begin at the slice's first row

  // Zeroed device memory.
  Extras* extras;       ///< one per slice
  RowCounts* rows;      ///< rows of all slices, if counted by parts
  PartSums* sums;       ///< one per part
  unsigned* encodings;  ///< kEncodings counts per slice, if counted by encodings
};

inline constexpr unsigned kElementsByParts = 1u << 14;  ///< elements of a part, if counted by parts
inline constexpr unsigned kElementsByEncodings =
    1u << 16;  ///< elements of a part, if counted by encodings
inline constexpr unsigned kEncodings = 1u << 16;

/// Counts with a bin for every sign, row and segment.
void count_parts(const WorkList<TableSlice>& list, CountWork work, ChunkedMemory& pinned,
                 cudaStream_t stream);
/// Counts 16-bit slices with a bin for every encoding.
void count_encodings(const WorkList<TableSlice>& list, CountWork work, ChunkedMemory& pinned,
                     cudaStream_t stream);
/// Returns true if the current device has the shared memory that count_encodings() needs: 128 KB a
/// block, which devices of compute capability 8.6, 8.9 and 12.0 lack.
bool can_count_encodings();

}  // namespace halfscope::cuda
