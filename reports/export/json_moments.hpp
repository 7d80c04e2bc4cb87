// SPDX-License-Identifier: Apache-2.0
// JSON of Adam's moments in few bits: docs/fields/moments.fields.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analyzers/weights/moments.hpp"

namespace halfscope::reports::exports {

nlohmann::ordered_json to_json(const analyzers::weights::MomentReplay& found);

}  // namespace halfscope::reports::exports
