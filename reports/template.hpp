// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace halfscope::reports {

/// The page with its script and style and with markers where findings go, as cmake/VegaBundle.cmake
/// put it into the library; empty when there was no Vega bundle at build time.
std::string_view page_template();
/// The same for two runs side by side.
std::string_view compare_template();

}  // namespace halfscope::reports
