// SPDX-License-Identifier: Apache-2.0
// The sections of `halfscope explain`: one number, one dot product of a Tensor Core, or one tensor
// at one step, taken apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "analyzers/underflow/largest_values.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/tensor_core/scaled_mma.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns what every format makes of a number: its encoding, its error, its neighbours and, if
/// log2_scale is not 0, what is left of it at 2^log2_scale. `text`: the number as it was typed,
/// which is the encoding `bits` of `in`.
Section number_section(const std::string& text, const NamedFormat& in, std::uint64_t bits,
                       int log2_scale);

/// Returns what a number times 2^log2_scale becomes in a format, and its value if `with_value`:
/// "subnormal, 2.38e-07".
std::string rounded_text(Format f, double value, int log2_scale, bool with_value);

/// Returns the terms of each step of a dot product, aligned and cut, and the rounding of their sum.
/// Arguments as of tensor_core::scaled_step(), but for any `count` of 1 or more.
std::vector<Section> sum_sections(const tensor_core::ScaledUnit& unit, tensor_core::Accumulator d,
                                  const tensor_core::ScaledOperand& a,
                                  const tensor_core::ScaledOperand& b, int count, std::uint32_t c);

/// Returns the histogram and the largest values of one tensor at a step, at scale 1 and at
/// 2^log2_scale, and what limits the scale. `selected` has that tensor and that step alone.
Section tensor_section(const analyzers::Study& run, const analyzers::Findings& selected,
                       const std::vector<analyzers::underflow::LargeValue>& largest,
                       int log2_scale);

}  // namespace halfscope::reports::answer
