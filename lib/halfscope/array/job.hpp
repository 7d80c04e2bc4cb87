// SPDX-License-Identifier: Apache-2.0
// Parameters of one call on arrays. Each job has functions that process n elements from element
// `first` of the call, with the widest vectors of the processor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "halfscope/array/array.hpp"
#include "halfscope/array/plan.hpp"

namespace halfscope {

/// The code that computes, chosen once per call. Without F16C, f16c falls back to vector.
enum class Way : std::uint8_t { scalar, vector, f16c };

struct NarrowingJob {
  Format format;
  ArrayOptions options;
  Way way;
  bool stream;  ///< stores bypass the caches
  NarrowingPlan plan;
};

struct WideningJob {
  Format format;
  ArrayOptions options;
  Way way;
  bool stream;
  WideningPlan plan;
};

struct ArithmeticJob {
  ArrayOperation operation;
  ArrayOptions options;
  Way way;
  bool stream;
  ArithmeticPlan plan;
};

Flags narrow_part(const NarrowingJob& job, const float* in, std::uint16_t* out, std::size_t first,
                  std::size_t n);
Flags narrow_part(const NarrowingJob& job, const float* in, std::uint8_t* out, std::size_t first,
                  std::size_t n);
Flags quantise_part(const NarrowingJob& job, float* values, std::size_t first, std::size_t n);
Flags widen_part(const WideningJob& job, const std::uint16_t* in, float* out, std::size_t first,
                 std::size_t n);
Flags widen_part(const WideningJob& job, const std::uint8_t* in, float* out, std::size_t first,
                 std::size_t n);
/// c: null unless the operation has three operands.
Flags compute_part(const ArithmeticJob& job, const std::uint16_t* a, const std::uint16_t* b,
                   const std::uint16_t* c, std::uint16_t* out, std::size_t first, std::size_t n);

}  // namespace halfscope
