// SPDX-License-Identifier: Apache-2.0
#include "reports/snippets.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace halfscope::reports {

std::string pytorch_static_scale(int log2) {
  const std::string scale = log2 >= 0 && log2 <= 40 ? fmt::format("{}.0", std::uint64_t{1} << log2)
                                                    : fmt::format("2.0**{}", log2);
  return fmt::format(
      "scaler = torch.cuda.amp.GradScaler(init_scale={}, growth_interval=2**31 - 1)  # never grows",
      scale);
}

}  // namespace halfscope::reports
