// SPDX-License-Identifier: Apache-2.0
// Conversion of the answer's sentences to HTML.
#pragma once

#include <string>
#include <string_view>

namespace halfscope::reports::page {

/// Returns the escaped sentence. Names are code elements that can be broken at separators.
std::string marked_html(std::string_view sentence);

}  // namespace halfscope::reports::page
