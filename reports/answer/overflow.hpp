// SPDX-License-Identifier: Apache-2.0
// The origin of NaN, infinities and overflow, and the remaining headroom, as sentences and tables.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns one section for each of the first events, with the magnitudes that led to it. The last
/// section is a table of the later events, if there are any.
std::vector<Section> event_sections(const analyzers::Study& study);

/// Headroom of a tensor. Gradients are at the recommended scale, or at 1 if there is none.
struct HeadroomToUse {
  const analyzers::overflow::Headroom* headroom = nullptr;
  double least = 0, last = 0;  ///< in binades: least of all steps, and at the last step
};
/// Returns the headroom of all tensors, least first.
std::vector<HeadroomToUse> headroom_to_use(const analyzers::Study& study);
/// Returns the headroom of every tensor, least first.
Table headroom_table(const analyzers::Study& study);

/// For example "3 events; least headroom 2.1 binades at loss scale 1".
std::string overflow_digest(const analyzers::Study& study);

}  // namespace halfscope::reports::answer
