// SPDX-License-Identifier: Apache-2.0
// The sections of `halfscope explain`: one number, one dot product of a Tensor Core, or one tensor
// at one step, taken apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/largest_values.hpp"
#include "analyzers/study.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/tensor_core/trace.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns what every format makes of a number: its encoding, its error, its neighbours and, if
/// log2_scale is not 0, what is left of it at 2^log2_scale. `text`: the number as it was typed,
/// which is the encoding `bits` of `in`.
Section number_section(const std::string& text, const NamedFormat& in, std::uint64_t bits,
                       int log2_scale);

/// Returns the value of an encoding: exactly, if that needs at most 17 digits, else the shortest
/// decimal that is read back as the same number.
std::string number_text(Format f, std::uint64_t bits);

/// Returns what a number times 2^log2_scale becomes in a format: "subnormal, 2.38e-07".
std::string rounded_text(const NamedFormat& f, double value, int log2_scale);

/// Returns the terms of each step of a dot product, aligned and cut, and the rounding of their sum.
/// Arguments as of tensor_core::traced_step(), but for any `count` of 1 or more.
std::vector<Section> sum_sections(const tensor_core::ScaledUnit& unit, tensor_core::Accumulator d,
                                  const tensor_core::ScaledOperand& a,
                                  const tensor_core::ScaledOperand& b, int count, std::uint32_t c);

/// Returns the histogram and the largest values of one tensor at a step, at scale 1 and at
/// 2^log2_scale, and what limits the scale. `one` has that tensor and that step alone.
Section tensor_section(const analyzers::Study& run, const analyzers::Findings& one,
                       const std::vector<analyzers::LargeValue>& largest, std::int64_t step,
                       int log2_scale);

}  // namespace halfscope::reports::answer
