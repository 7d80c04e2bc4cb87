// SPDX-License-Identifier: Apache-2.0
// The type that computed a tensor's values, inferred from its frames one after another.
// Converts an analysis into one for bfloat16. A run is known to be in bfloat16 only after all of it
// is read. The facts needed are therefore kept while reading, and the log is not read again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Finds out if gradients of one log were computed in bfloat16, and none in binary16.
class Bfloat16Run {
 public:
  void add(const TensorFindings& tensor);
  bool is_one() const { return bfloat16_ && !half_; }

 private:
  bool half_ = false, bfloat16_ = false;
};

/// Returns true if some log has gradients, and every such log is a Bfloat16Run.
bool runs_in_bfloat16(const Analysis& analysis);

/// Returns true if a bucket contains zero and values that `target` keeps at loss scale 1.
bool hides_flushed(const frames::Frame& frame, Format target);

/// Sets zeros_may_be_flushed and underflow_identifiable from the tensor's other fields. Underflow
/// shows if values were computed in a format with smaller magnitudes than the target's. In binary16
/// data, values that underflowed are already zero; if there is no zero, none did. `zeros`: some
/// value is, or may be, zero.
void judge_zeros(TensorFindings& tensor, bool zeros, Format target);

class Provenance {
 public:
  void add(const frames::Frame& frame, Format target);

  /// Sets source_dtype, computed_dtype, suspected_fp16, hidden_by_buckets and the fields that
  /// judge_zeros() sets.
  void tell(TensorFindings& tensor, Format target) const;

 private:
  void look_for_binary16(const frames::Frame& frame);
  bool looks_like_binary16() const;

  std::optional<Dtype> source_;
  std::optional<Dtype> computed_;
  bool zeros_ = false;        ///< some value is, or may be, zero
  bool hidden_ = false;       ///< a bucket contains zeros and values that the target keeps
  bool all_fit_ = true;       ///< values of every step are a power of two times binary16 values
  bool no_bfloat16_ = false;  ///< some values need more bits than bfloat16 has
  bool no_grid_ = false;      ///< some step's values are not multiples, below 2^11, of one number
  /// Number of different FP16 values that rules out chance: a random FP32 value is one with a
  /// probability of 2^-13, three values with one of 2^-39. docs/numerics/statistics.md.
  static constexpr std::size_t kDifferentValues = 3;
  /// Binade and segment of values that are not powers of two; different entries are surely
  /// different values. A fixed array, since a log may have a million tensors.
  std::array<std::pair<int, std::uint32_t>, kDifferentValues> different_ = {};
  std::uint8_t differ_ = 0;  ///< number of entries in different_
};

/// Returns the classes of one step's values of a tensor in a format.
StepClasses classes_of(const frames::Frame& frame, const Target& target, double loss_scale);

/// Returns the classes in bfloat16, with the target's subnormals; empty in the usual case that all
/// finite nonzero values are normal numbers there.
std::optional<StepClasses> unusual_in_bfloat16(const frames::Frame& frame, const Target& target,
                                               double loss_scale);

/// Returns true if a tensor's frame can be judged in bfloat16 without its values. False for a
/// gradient in binary16, which is never judged so, and if a scale is no power of two: histograms
/// counted for another format are then not exact in bfloat16.
bool may_judge_in_bfloat16(const frames::Frame& frame, double loss_scale);

/// Converts the analysis into the result that analyze() would have in bfloat16. Returns false and
/// changes nothing if the logs must be read again (Analysis::known_in_bfloat16 is false).
bool judge_in_bfloat16(Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
