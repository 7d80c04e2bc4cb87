// SPDX-License-Identifier: Apache-2.0
// The two counting passes, as the host starts them. Internal to table/.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halfscope/table/count/cuda_rows.hpp"

namespace halfscope::cuda {

/// Where a tensor's rows lie.
struct Place {
  std::size_t rows;    ///< the index of the first
  unsigned first_row;  ///< and which one that is
};

/// What the passes work on; arrays in device memory. Extras and rows are zero at first.
struct CountWork {
  const std::uint8_t* segments;  ///< segment_table()
  const Place* places;           ///< a tensor each
  Extras* extras;                ///< a tensor each
  RowCounts* rows;
};

/// A block takes a part; sums: one a part.
void count_parts(const Part* parts, std::size_t count, const CountWork& work, PartSums* sums,
                 cudaStream_t stream);

/// Counts of whole encodings; zero between uses.
struct Encodings {
  static constexpr unsigned kMagnitudes = 1 << 15;
  unsigned long long magnitudes[kMagnitudes];
  unsigned long long negatives[kNanRow + 1];
};

/// A whole tensor of 16 bits, by encodings. sums: encoding_sums(count) of them.
void count_encodings(const DeviceTensor& tensor, unsigned index, const CountWork& work,
                     Encodings* encodings, PartSums* sums, cudaStream_t stream);
std::size_t encoding_sums(std::int64_t count);

}  // namespace halfscope::cuda
