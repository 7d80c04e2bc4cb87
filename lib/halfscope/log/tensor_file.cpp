// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/tensor_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"

namespace halfscope::log {

std::optional<std::uint64_t> element_count(const std::vector<std::uint64_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return 0;
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  constexpr std::size_t kShown = 8;
  const std::size_t shown = std::min(shape.size(), kShown);
  return fmt::format("[{}{}]",
                     fmt::join(shape.begin(), shape.begin() + static_cast<long>(shown), ", "),
                     shape.size() > kShown ? ", ..." : "");
}

std::string place_text(std::string_view file, std::string_view tensor) {
  constexpr std::size_t kShown = 200;
  return fmt::format("{}: tensor '{}{}'", file, printable(tensor.substr(0, kShown)),
                     tensor.size() > kShown ? "..." : "");
}

}  // namespace halfscope::log
