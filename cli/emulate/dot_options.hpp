// SPDX-License-Identifier: Apache-2.0
// The options that choose the unit of a Tensor Core and the formats of its operands.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "cli/emulate/lines.hpp"
#include "cli/options/parser.hpp"

namespace halfscope::cli::emulate {

struct DotOptions {
  tensor_core::Architecture architecture = {};  ///< without a name: not given
  std::size_t sums = 0, inputs = 0;             ///< index of the word that was given
  std::optional<Format> a, b;
  std::optional<tensor_core::Scale> scales;
};

/// Adds --arch, --accumulate, --inputs, --a, --b and --scales.
void add_dot_options(options::Command& command, const std::shared_ptr<DotOptions>& options);

/// Returns the dot product that the options describe. Throws BadUsage if the architecture has no
/// such unit.
DotProduct dot_product_of(const DotOptions& options);

}  // namespace halfscope::cli::emulate
