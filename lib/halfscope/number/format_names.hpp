// SPDX-License-Identifier: Apache-2.0
// Formats by the names that people and frameworks use for them: "binary16", "fp16", "half".
#pragma once

#include <string>
#include <string_view>

#include "halfscope/number/format.hpp"

namespace halfscope {

/// Returns the format with that name or alias, in any case, or null if there is none.
const NamedFormat* format_called(std::string_view name);

/// Lists every format with its aliases: "binary16 (fp16, half, float16), bfloat16 (bf16), ...".
std::string format_names();

/// Completes the sentence "format 'x' is ..." for a name that format_called() does not know.
std::string why_no_format(std::string_view name);

}  // namespace halfscope
