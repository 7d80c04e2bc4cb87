// SPDX-License-Identifier: Apache-2.0
// JSON of Adam's moments in few bits: docs/fields/moments.fields.
#pragma once

#include "analyzers/weights/moments.hpp"
#include "reports/export/json.hpp"

namespace halfscope::reports::exports {

Json to_json(const analyzers::weights::MomentReplay& found);

}  // namespace halfscope::reports::exports
