// SPDX-License-Identifier: Apache-2.0
// Sentences on what is lost, which scale to use and what limits it. No string has marks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analyzers/study.hpp"

namespace halfscope::reports::answer {

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

/// Returns the lowest scale that the buckets of the log allow, as a sentence without marks.
/// Precondition: hidden_underflow() is in_buckets.
std::string lowest_in_buckets(const analyzers::Study& study);

/// Returns a share of all gradients: "0.21 %", "0.21 % to 41.3 %", "no values".
std::string lost_text(const analyzers::underflow::Share& share);

/// Returns the share that a scale flushes: "0.21 % to 41.3 %", "not identifiable (0 % to 98.3 %)".
std::string flushed_text(const analyzers::Study& study, const analyzers::underflow::Share& share);

/// Returns "NaN at loss scale 1024 (2^10) is taken as overflow". Requires limit.nan_at.
std::string nan_limit_text(const analyzers::recommend::Limit& limit);

/// Returns why the largest gradients are unknown. Precondition: overflow_not_identifiable.
std::string hidden_maximum(const analyzers::recommend::Recommendation& advice);

/// A warning that gradients counted as unscaled seem to carry the loss scale, and what to do.
struct CarriedWords {
  std::string what, action;
};
/// Empty if no gradients seem to carry the loss scale.
std::optional<CarriedWords> carried_words(const analyzers::Findings& found);

/// For example "one of steps 11 to 20 was skipped at loss scale 65536 (2^16) or less".
/// Precondition: the limit has skipped_at.
std::string skipped_limit_text(const analyzers::recommend::Limit& limit);

/// Returns "no loss scale cures", or "no loss scale of 1 or more cures" for an event at scale 1.
std::string_view no_cure_text(const analyzers::overflow::OverflowEvent& event);

}  // namespace halfscope::reports::answer
