// SPDX-License-Identifier: Apache-2.0
// The two counting passes' interface to the host. Internal to table/.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halfscope/table/count/cuda_rows.hpp"

namespace halfscope::cuda {

/// Location of a tensor's rows.
struct Place {
  std::size_t rows;    ///< index of the first row in CountWork::rows
  unsigned first_row;  ///< row number of that row
};

/// Arrays in device memory for the passes. Extras and rows are initially zero.
struct CountWork {
  const std::uint8_t* segments;  ///< segment_table()
  const Place* places;           ///< one per tensor
  Extras* extras;                ///< one per tensor
  RowCounts* rows;
};

/// Counts each part by one block of threads. sums: one per part.
void count_parts(const Part* parts, std::size_t count, const CountWork& work, PartSums* sums,
                 cudaStream_t stream);

/// Counts of whole encodings; all zero between uses.
struct Encodings {
  static constexpr unsigned kMagnitudes = 1 << 15;
  unsigned long long magnitudes[kMagnitudes];
  unsigned long long negatives[kNanRow + 1];
};

/// Counts a whole 16-bit tensor by encodings. sums: encoding_sums(count) entries.
void count_encodings(const DeviceTensor& tensor, unsigned index, const CountWork& work,
                     Encodings* encodings, PartSums* sums, cudaStream_t stream);
std::size_t encoding_sums(std::int64_t count);

}  // namespace halfscope::cuda
