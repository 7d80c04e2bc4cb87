// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/one_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::common {

using log::printable;

void refuse_several(const std::filesystem::path& log, const std::string& what,
                    const std::vector<std::filesystem::path>& runs) {
  constexpr std::size_t kShown = 5;
  constexpr std::size_t kLongest = 512;  // of a path that is shown
  std::string list;
  for (std::size_t i = 0; i < std::min(runs.size(), kShown); ++i) {
    list += (i == 0 ? "'" : ", '") + printable(runs[i].string().substr(0, kLongest)) + "'";
  }
  if (runs.size() > kShown) list += fmt::format(" and {} more", runs.size() - kShown);
  throw log::BadInput(fmt::format("{}: holds {} {}: {}; expected one run: name one of these",
                                  printable(log.string()), runs.size(), what, list));
}

}  // namespace halfscope::analyzers::readers::common
