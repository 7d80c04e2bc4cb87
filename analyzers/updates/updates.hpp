// SPDX-License-Identifier: Apache-2.0
// Weight updates that FP16 loses: pairs of whole tensors, element by element.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/logs.hpp"
#include "analyzers/underflow/update_findings.hpp"

namespace halfscope::analyzers::underflow {
struct Analysis;
}

namespace halfscope::analyzers::updates {

/// The format that weights have to which updates are added.
enum class AddedTo : std::uint8_t {
  target,  ///< the target's: what it would make of them
  kept     ///< the one of 16 bits that the run keeps the weight in; the target's where it is wider
};

/// Sets TensorFindings::updates of the weights (or master weights, where there is no weight) that
/// have pairs in the logs' whole tensors. Targets of other width than 16 have none. Throws
/// log::BadInput.
void add_updates(underflow::Analysis& analysis, const frames::Selection& selection,
                 bool with_what_if, const frames::Progress& progress = {},
                 AddedTo added_to = AddedTo::target, const readers::Logs& opened = {});

}  // namespace halfscope::analyzers::updates
