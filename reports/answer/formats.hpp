// SPDX-License-Identifier: Apache-2.0
// Number formats: their names, which tensors fit which, and FP8 and MX formats that a run could
// use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "reports/answer/section.hpp"
#include "reports/answer/series.hpp"

namespace halfscope::reports::answer {

/// Returns the usual name of a format of kFormats: "FP16" for "binary16".
std::string people_say(std::string_view format);
std::string people_say(Dtype dtype);
/// Returns the usual name of the target format.
std::string format_name(const analyzers::underflow::Analysis& analysis);

/// Returns the result for a tensor in a format; null if the format was not tested. `saturating`:
/// true for the result in which overflow becomes the largest value.
const analyzers::underflow::FormatFit* find_fit(const analyzers::underflow::TensorFindings& tensor,
                                                std::string_view format, bool saturating = false);

/// Returns the name of an MX format: "MXFP8 E4M3".
std::string mx_name(const block::Recipe& recipe);

/// Returns true if a tensor has NaN or infinities that are not of skipped steps. Its fits are then
/// judged by its other values alone.
inline bool holds_nonfinite(const analyzers::underflow::TensorFindings& tensor) {
  return tensor.counts.nan.low + tensor.counts.inf.low >
         tensor.whole->skipped_nan + tensor.whole->skipped_inf;
}

/// Returns the format that computed a tensor, as far as the log or its values show: "FP16".
std::string computed_text(const analyzers::underflow::TensorFindings& tensor);

/// Returns "NaN", "infinities" or "NaN and infinities".
std::string nonfinite_names(std::uint64_t nan, std::uint64_t inf);

struct FitSums {
  std::size_t tensors = 0;           ///< tested, with finite nonzero values
  std::size_t nonfinite = 0;         ///< with NaN or infinities; in no count below
  std::size_t eight_bits = 0;        ///< fit an 8-bit format, scaled or not
  std::size_t eight_bits_as_is = 0;  ///< fit an 8-bit format without a scale
  std::size_t wider_than_16 = 0;     ///< fit no 16-bit format
};
FitSums fit_sums(const analyzers::underflow::Analysis& analysis);

/// Tensors in one format, each at its own best scale.
struct OwnScales {
  std::size_t tensors = 0;             ///< tested, with finite nonzero values
  std::size_t fit = 0;                 ///< fit at their best scale
  std::optional<int> lowest, highest;  ///< log2 of the best scales
  Interval zero, zero_at_1;  ///< values that become zero at the best scale, and at scale 1
  std::uint64_t values = 0;  ///< finite nonzero values
};
OwnScales own_scales(const Tensors& tensors, std::string_view format, Subnormals subnormals);

/// Sums for an 8-bit target, whose recipes scale each tensor; `gradients`: only loss-scaled
/// tensors.
struct EachScaled {
  OwnScales all, gradients;
};
/// Empty if the target is wider than 8 bits or no tensor was tested in it.
std::optional<EachScaled> each_scaled(const analyzers::underflow::Analysis& analysis);

/// Returns sentences on settings that should differ from the defaults, or that none should.
std::vector<std::string> delayed_sentences(const analyzers::formats::AmaxHistory& history);
/// Returns one row for each length of the history.
Table delayed_table(const analyzers::formats::AmaxHistory& history);

/// For example "In MXFP8 blocks E4M3 keeps more than E5M2 in 11 of 12 gradients, E5M2 in 1: the
/// medians are 31.5 dB in E4M3 and 25.4 dB in E5M2."
std::string mx_gradients_text(const analyzers::formats::MxGradients& found);

/// Returns each role's narrowest format and its noise, and how much the flushed gradients weigh.
/// Empty if the log was analyzed without formats.
Section formats_section(const analyzers::Findings& found);

/// Returns the formats of each tensor, first tensors that need wide ones. In formats_table.cpp.
Table formats_table(const analyzers::underflow::Analysis& analysis);

/// For example "3 of 12 tensors fit 8 bits; 1 holds NaN or infinity".
std::string formats_digest(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::answer
