// SPDX-License-Identifier: Apache-2.0
// The lowest loss scale at which no more than a target share of any tensor is flushed to zero.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// How values are taken of which a log gives bounds.
enum class Take : std::uint8_t {
  worst,  ///< flushed where they may be
  zeros,  ///< as zeros where they may be zeros, else flushed where they may be
  best    ///< flushed where they must be
};

/// Whether the log has bounds that leave open what is flushed.
bool is_bounded(const TensorFindings& tensor);

/// Names of the tensors of which more than the target share is flushed at loss scale 2^k; where
/// only bounds are known, of which it surely is, what may be zero taken as zeros.
std::vector<std::string> names_above_target(const std::vector<const TensorFindings*>& tensors,
                                            const Target& target, int k, double most_flushed);

/// log2 of the smallest power of two from 2^-24 to 2^40 at which every tensor is within the target;
/// empty where none is.
std::optional<int> lowest_log2(const std::vector<const TensorFindings*>& tensors,
                               const Target& target, double most_flushed, Take take = Take::worst);

/// The same at which nothing is flushed, of gradients whose smallest magnitudes are known and no
/// counts; empty where none is, and where those of some are not known.
std::optional<int> lowest_log2_of_peaks(const Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
