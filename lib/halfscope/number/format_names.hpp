// SPDX-License-Identifier: Apache-2.0
// Formats by the names that people and frameworks have for them: "binary16", "fp16", "half".
#pragma once

#include <string>
#include <string_view>

#include "halfscope/number/format.hpp"

namespace halfscope {

/// By its own name or another one, in upper or lower case. Null when no format has that name.
const NamedFormat* format_called(std::string_view name);

/// Every format with its other names: "binary16 (fp16, half, float16), bfloat16 (bf16), ...".
std::string format_names();

/// The rest of the sentence "format 'x' is ..." for a name that format_called() does not know.
std::string why_no_format(std::string_view name);

}  // namespace halfscope
