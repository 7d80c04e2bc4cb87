// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/user_limit.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace halfscope::log {

std::uint64_t user_limit(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  const std::string_view digits = text;
  std::uint64_t limit = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), limit);
  return error == std::errc() && end == digits.data() + digits.size() ? limit : otherwise;
}

}  // namespace halfscope::log
