// SPDX-License-Identifier: Apache-2.0
// Where NaN, infinities and overflow come from, and how much headroom is left, as sentences and
// tables.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// An event each, the first ones with what led there; the last section has the later ones.
std::vector<Section> event_sections(const analyzers::Study& study);

/// A tensor's headroom: of gradients at the scale to use, at 1 where there is none.
struct HeadroomToUse {
  const analyzers::overflow::Headroom* headroom = nullptr;
  double least = 0, last = 0;  ///< binades
};
std::vector<HeadroomToUse> headroom_to_use(const analyzers::Study& study);  ///< least first
/// The scale that gradients are seen at: "the recommended 65536 (2^16)".
std::string headroom_scale_text(const analyzers::Study& study);

/// The headroom of every tensor, least first.
Table headroom_table(const analyzers::Study& study);

/// The least headroom of gradients over all steps, where the scalars or skipped steps leave less
/// than every histogram: "1.4 binades". Else empty.
std::string least_of_all_steps(const analyzers::Study& study);

/// "3 events; least headroom 2.1 binades at loss scale 1"
std::string overflow_digest(const analyzers::Study& study);

}  // namespace halfscope::reports::answer
