// SPDX-License-Identifier: Apache-2.0
// The lowest loss scale at which at most a target share of any tensor is flushed to zero.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// How to count values for which a log has only bounds.
enum class Take : std::uint8_t {
  worst,  ///< flushed if they may be
  zeros,  ///< zeros if they may be zeros, else flushed if they may be
  best    ///< flushed only if they must be
};

/// Returns true if the log has only bounds, so that the number of flushed values is uncertain.
bool is_bounded(const TensorFindings& tensor);

/// Returns the names of the tensors that lose more than the share `most_flushed` at loss scale 2^k.
/// If only bounds are known, a tensor must surely do so; possible zeros count as zeros.
std::vector<std::string> names_above_target(const std::vector<const TensorFindings*>& tensors,
                                            const Target& target, int k, double most_flushed);

/// Returns log2 of the smallest power of two from 2^-24 to 2^40 at which every tensor meets the
/// target; empty if there is none.
std::optional<int> lowest_log2(const std::vector<const TensorFindings*>& tensors,
                               const Target& target, double most_flushed, Take take = Take::worst);

/// Like lowest_log2() with a target of 0, for gradients with smallest magnitudes but no counts.
/// Empty also if some gradient's smallest magnitude is unknown.
std::optional<int> lowest_log2_of_peaks(const Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
