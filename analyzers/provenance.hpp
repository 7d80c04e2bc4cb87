// SPDX-License-Identifier: Apache-2.0
// What a tensor's values were computed in, told by its frames one after the other.
#pragma once

#include <optional>

#include "analyzers/underflow.hpp"

namespace halfscope::analyzers {

/// Whether in every log that has gradients some were computed in bfloat16, and none in binary16.
bool runs_in_bfloat16(const Analysis& analysis);

class Provenance {
 public:
  void add(const Frame& frame, Format target);

  /// Sets source_dtype, computed_dtype, suspected_fp16 and underflow_identifiable. Underflow shows
  /// only where values were computed in a format with smaller magnitudes than the target's: in
  /// binary16 data what underflowed is already zero.
  void tell(TensorFindings& tensor, Format target) const;

 private:
  std::optional<Dtype> source_;
  std::optional<Dtype> computed_;
  bool all_fit_ = true;  ///< every step's values are a power of two from binary16 values
  bool evidence_ =
      false;             ///< some need more bits than bfloat16 has, so that binary16 explains them
  bool hidden_ = false;  ///< a bucket holds zeros and values that the target keeps
};

}  // namespace halfscope::analyzers
