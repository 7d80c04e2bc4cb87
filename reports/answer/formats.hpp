// SPDX-License-Identifier: Apache-2.0
// Which tensors fit which formats, summed up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/underflow/underflow.hpp"
#include "reports/answer/series.hpp"

namespace halfscope::reports::answer {

/// What people call a format of kFormats: "FP16" for "binary16".
std::string people_say(std::string_view format);
std::string people_say(Dtype dtype);

/// What was found of a tensor in a format; null where it was not tested. saturating: where overflow
/// gives the largest value.
const analyzers::underflow::FormatFit* find_fit(const analyzers::underflow::TensorFindings& tensor,
                                                std::string_view format, bool saturating = false);

/// Of an MX format with elements of such a format: "MXFP8 E4M3".
std::string mx_name(std::string_view element);

/// Whether a tensor holds NaN or infinity beside those of skipped steps: what fits then is said of
/// its other values alone.
inline bool holds_nonfinite(const analyzers::underflow::TensorFindings& tensor) {
  return tensor.counts.nan.low + tensor.counts.inf.low >
         tensor.whole->skipped_nan + tensor.whole->skipped_inf;
}

/// What a tensor was computed in, as far as the log or its values show: "FP16".
std::string computed_text(const analyzers::underflow::TensorFindings& tensor);

/// "NaN", "infinities", "NaN and infinities"
std::string nonfinite_names(std::uint64_t nan, std::uint64_t inf);

/// "12 infinities of skipped steps are left out."; empty where there are none.
std::string skipped_values_text(const analyzers::underflow::Analysis& analysis);

/// "A format fits where nothing overflows and the signal-to-quantisation-noise ratio is 20 dB or
/// more: ..."
std::string fit_rule_text(double enough_db);

struct FitSums {
  std::size_t tensors = 0;           ///< that have fits
  std::size_t nonfinite = 0;         ///< of them hold NaN or infinity, and are counted in no other
  std::size_t eight_bits = 0;        ///< of them fit an 8-bit format, with a scale or without
  std::size_t eight_bits_as_is = 0;  ///< of them without a scale
  std::size_t wider_than_16 = 0;     ///< fit no 16-bit format
};
FitSums fit_sums(const analyzers::underflow::Analysis& analysis);

/// Tensors in one format, each at the best scale of its own.
struct OwnScales {
  std::size_t tensors = 0;             ///< that were tested and hold finite nonzero values
  std::size_t fit = 0;                 ///< of them at that scale, with enough signal
  std::optional<int> lowest, highest;  ///< log2 of these scales
  Interval zero, zero_at_1;            ///< values that become zero there, and at scale 1
  std::uint64_t values = 0;            ///< finite nonzero ones
};
OwnScales own_scales(const Tensors& tensors, std::string_view format, Subnormals subnormals);

/// Of a target of 8 bits, whose recipes set a scale for each tensor: all tensors, and those that a
/// loss scale multiplies.
struct EachScaled {
  OwnScales all, gradients;
};
/// Empty for a wider target, and where no tensor was tested in it.
std::optional<EachScaled> each_scaled(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::answer
