// SPDX-License-Identifier: Apache-2.0
// A sentence of the answer in HTML.
#pragma once

#include <string>
#include <string_view>

namespace halfscope::reports::page {

/// Escaped; names are set as code, and may be broken at their separators.
std::string marked_html(std::string_view sentence);

}  // namespace halfscope::reports::page
