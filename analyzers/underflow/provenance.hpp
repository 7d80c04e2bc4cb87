// SPDX-License-Identifier: Apache-2.0
// What a tensor's values were computed in, told by its frames one after the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Whether gradients of one log were computed in bfloat16, and none in binary16.
class Bfloat16Run {
 public:
  void add(const TensorFindings& tensor);
  bool is_one() const { return bfloat16_ && !half_; }

 private:
  bool half_ = false, bfloat16_ = false;
};

/// Whether every log that has gradients is one.
bool runs_in_bfloat16(const Analysis& analysis);

/// Whether a bucket reaches from zero to values that are kept without a loss scale.
bool hides_flushed(const frames::Frame& frame, Format target);

/// Sets zeros_may_be_flushed and underflow_identifiable, by what else is known of the tensor.
/// Underflow shows where values were computed in a format with smaller magnitudes than the
/// target's. In binary16 data what underflowed is already zero; where there is no zero, nothing
/// was. zeros: some value is zero, or may be.
void judge_zeros(TensorFindings& tensor, bool zeros, Format target);

class Provenance {
 public:
  void add(const frames::Frame& frame, Format target);

  /// Sets source_dtype, computed_dtype, suspected_fp16, hidden_by_buckets and what judge_zeros()
  /// sets.
  void tell(TensorFindings& tensor, Format target) const;

 private:
  void look_for_binary16(const frames::Frame& frame);
  bool looks_like_binary16() const;

  std::optional<Dtype> source_;
  std::optional<Dtype> computed_;
  bool zeros_ = false;        ///< some value is zero, or may be
  bool hidden_ = false;       ///< a bucket holds zeros and values that the target keeps
  bool all_fit_ = true;       ///< every step's values are a power of two from binary16 values
  bool no_bfloat16_ = false;  ///< some need more bits than bfloat16 has
  bool no_grid_ = false;      ///< some step's are no multiples, below 2^11, of one number
  /// So many different values that FP16 holds are no accident: of random FP32 values each does with
  /// a chance of 2^-13, three do with one of 2^-39. docs/numerics/statistics.md.
  static constexpr std::size_t kDifferentValues = 3;
  /// Binade and segment of values that are no powers of two: as many are different for sure. In
  /// place, since a log may have a million tensors.
  std::array<std::pair<int, std::uint32_t>, kDifferentValues> different_ = {};
  std::uint8_t differ_ = 0;  ///< how many there are
};

}  // namespace halfscope::analyzers::underflow
