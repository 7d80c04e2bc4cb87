// SPDX-License-Identifier: Apache-2.0
// The sections of `halfscope explain`: one number, one dot product of a Tensor Core, or one
// tensor at one step, taken apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/one_tensor.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/tensor_core/trace.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// A number to explain: an encoding of a format, and the text that it was read from.
struct NumberAsked {
  std::string text;
  NamedFormat in;
  std::uint64_t bits = 0;
};

/// Reads a decimal number, a hexadecimal one with an exponent ("0x1.8p+3"), "inf" or "nan", each
/// rounded once to binary64; or an encoding ("0x3C00") of `format`, which may be null: then of the
/// first format in kFormats with as many hexadecimal digits. Returns nothing for other texts.
/// Throws std::invalid_argument for an encoding that no format has, and for a finite number beyond
/// binary64's range.
std::optional<NumberAsked> number_called(const std::string& text, const NamedFormat* format);

/// Returns what every format makes of a number: its encoding, its error, its neighbours, the scales
/// that it needs and, if log2_scale is not 0, what is left of it at the scale 2^log2_scale.
std::vector<Section> number_sections(const NumberAsked& asked, int log2_scale);

/// A dot product to explain, as `halfscope mma` computes it.
struct SumAsked {
  std::string_view architecture;
  tensor_core::ScaledUnit unit;
  tensor_core::Accumulator accumulator;
  Format a, b;                                    ///< of the elements
  std::vector<std::uint16_t> a_values, b_values;  ///< encodings
  std::vector<tensor_core::TracedStep> steps;     ///< at least one
};

/// Returns the terms of each step, aligned and cut, and the rounding of their sum.
std::vector<Section> sum_sections(const SumAsked& asked);

/// Returns what a finite number times 2^log2_scale becomes in a format: "subnormal, 2.38e-07".
std::string rounded_text(const NamedFormat& f, double value, int log2_scale);

/// Returns the histogram, the classes and the largest values of one tensor of a run at a step: at
/// scale 1 and, if there is one, at 2^log2_scale, and what limits the scale.
std::vector<Section> tensor_sections(const analyzers::Study& run, const analyzers::OneTensor& one,
                                     std::int64_t step, std::optional<int> log2_scale);

}  // namespace halfscope::reports::answer
