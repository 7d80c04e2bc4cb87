// SPDX-License-Identifier: Apache-2.0
// What is lost, which scale to use, what limits it: the sentences. Plain text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analyzers/study.hpp"

namespace halfscope::reports::answer {

/// Whether what underflowed is among the zeros.
bool hides_underflow(const analyzers::underflow::Analysis& analysis);

/// Why the log does not tell what underflows.
enum class Hidden : std::uint8_t {
  no,
  in_zeros,    ///< computed in the format: what underflowed is zero already
  in_buckets,  ///< a bucket holds zero and other values
  no_counts    ///< there are magnitudes without counts
};
Hidden hidden_underflow(const analyzers::recommend::Recommendation& advice);

/// Whether buckets of some gradient hold zero and values that are kept.
bool hidden_by_buckets(const analyzers::underflow::Analysis& analysis);

/// Of a log whose buckets hide it: which lowest scale they allow, in sentences; plain text.
std::string lowest_in_buckets(const analyzers::Study& study);

/// A share of all gradients, as counted: "0.21 %", "0.21 % to 41.3 %", "no values".
std::string lost_text(const analyzers::underflow::Share& share);

/// What a scale flushes of all gradients: "0.21 % to 41.3 %", "not identifiable (0 % to 98.3 %)".
std::string flushed_text(const analyzers::Study& study, const analyzers::underflow::Share& share);

/// "NaN at loss scale 1024 (2^10) is taken as overflow", of a limit that has nan_at.
std::string nan_limit_text(const analyzers::recommend::Limit& limit);

/// Why the largest gradients are not known, where Recommendation::overflow_not_identifiable.
std::string hidden_maximum(const analyzers::recommend::Recommendation& advice);

/// Gradients that seem to carry the loss scale although they count as unscaled, and what to do.
struct CarriedWords {
  std::string what, action;
};
/// Empty if no gradients seem to carry it.
std::optional<CarriedWords> carried_words(const analyzers::Findings& found);

/// "one of steps 11 to 20 was skipped at loss scale 65536 (2^16)", of a limit that has skipped_at.
std::string skipped_limit_text(const analyzers::recommend::Limit& limit);

/// "no loss scale cures", or which one would not, of an event that none above 1 does.
std::string_view no_cure_text(const analyzers::overflow::OverflowEvent& event);

}  // namespace halfscope::reports::answer
