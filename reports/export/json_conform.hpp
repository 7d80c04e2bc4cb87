// SPDX-License-Identifier: Apache-2.0
// The result of `halfscope conform` as JSON (docs/json.md).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analyzers/blocks/files.hpp"

namespace halfscope::reports::exports {

nlohmann::ordered_json conform_json(const analyzers::blocks::FileConformity& found);

}  // namespace halfscope::reports::exports
