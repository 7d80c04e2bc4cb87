// SPDX-License-Identifier: Apache-2.0
// The loss scale to use, the reasons for it, and what limits it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns the scale to use, or that none is needed, or why none can be recommended. `fine`: true
/// to say that PyTorch's defaults are sufficient; requires default_fine().
std::string scale_sentence(const analyzers::Study& study, bool fine);

/// Returns true if PyTorch's defaults are sufficient: nothing breaks, and in a replay they skip few
/// steps and lose hardly more gradients than the best settings.
bool default_fine(const analyzers::Study& study);

inline constexpr std::string_view kDefaultFine =
    "PyTorch's default GradScaler() is fine for this run: change nothing.";

/// Returns the scale for parameters in FP16 if it is less than the recommended one; else empty.
std::string half_parameters_text(const analyzers::recommend::Recommendation& advice);

/// Returns `reason` of the JSON: "no_gradients", ..., or missed_text(); empty if a scale suffices.
std::string reason_json_text(const analyzers::recommend::Recommendation& advice);
/// Returns the reason: "every finite gradient value is zero". Empty if a scale is recommended.
std::string no_scale_text(const analyzers::Study& study);

/// Returns what the recommended scale does not achieve, as the end of a sentence without marks.
/// Names are not made printable. Empty if misses_target() is false.
std::string missed_text(const analyzers::recommend::Recommendation& advice);

/// Returns what static_log2 is: "upper bound" if Recommendation::all_steps_censored(), "allowed" if
/// only the finite gradients allow it and no scale helps the run, else "recommended".
std::string_view advised_word(const analyzers::recommend::Recommendation& advice);

/// For example "infinities hide ..., so 2^15 is only an upper bound."
std::string upper_bound_text(std::string_view scale);

/// Returns a sentence on the origin of the settings.
std::string why_settings_text(const analyzers::recommend::DynamicAdvice& advice);

/// Returns the name that JSON has: "tensor", "softmax", ...
std::string_view name_of(analyzers::recommend::KeepInFp32::Kind kind);

/// For example "its inputs reach 300, whose square is beyond binary16's largest, 65504".
std::string why_text(const analyzers::recommend::KeepInFp32& keep,
                     const analyzers::recommend::Recommendation& advice);
/// For example "10 outputs and 3 inputs: no multiple of 8".
std::string why_text(const analyzers::recommend::Footprint::Odd& odd);

/// Returns true if values that underflowed are recorded as zeros in some gradient.
bool hides_underflow(const analyzers::underflow::Analysis& analysis);

/// Why underflow cannot be measured from the log.
enum class Hidden : std::uint8_t {
  no,
  in_zeros,    ///< computed in the target format: an underflowed value is zero already
  in_buckets,  ///< a bucket has zero and other values
  no_counts    ///< there are largest magnitudes but no counts
};
Hidden hidden_underflow(const analyzers::recommend::Recommendation& advice);

/// Returns true if a bucket of some gradient has both zero and values that the format keeps.
bool hidden_by_buckets(const analyzers::underflow::Analysis& analysis);

/// Returns a share of all gradients: "0.21 %", "0.21 % to 41.3 %", "no values".
std::string lost_text(const analyzers::underflow::Share& share);

/// Returns the share that a scale flushes: "0.21 % to 41.3 %", "not identifiable (0 % to 98.3 %)".
std::string flushed_text(const analyzers::Study& study, const analyzers::underflow::Share& share);

/// Returns "NaN at loss scale 1024 (2^10) is taken as overflow". Requires limit.nan_at.
std::string nan_limit_text(const analyzers::recommend::Limit& limit);

/// Returns why the largest gradients are unknown. Precondition: overflow_not_identifiable.
std::string hidden_maximum(const analyzers::recommend::Recommendation& advice);

/// Returns a warning that gradients counted as unscaled seem to carry the loss scale, and what to
/// do. Empty if they do not.
std::optional<Finding> carried_finding(const analyzers::Findings& found);

/// For example "one of steps 11 to 20 was skipped at loss scale 65536 (2^16) or less".
/// Precondition: the limit has skipped_at.
std::string skipped_limit_text(const analyzers::recommend::Limit& limit);

}  // namespace halfscope::reports::answer
