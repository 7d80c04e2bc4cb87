// SPDX-License-Identifier: Apache-2.0
// A folder that holds the logs of several runs, where one is wanted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace halfscope::analyzers::readers::common {

/// Throws log::BadInput: `log` holds `what` ("MLflow runs"), of which one is to be named; some of
/// them are.
[[noreturn]] void refuse_several(const std::filesystem::path& log, const std::string& what,
                                 const std::vector<std::filesystem::path>& runs);

}  // namespace halfscope::analyzers::readers::common
