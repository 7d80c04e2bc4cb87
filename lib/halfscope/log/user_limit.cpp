// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/user_limit.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "halfscope/log/error.hpp"

namespace halfscope::log {

std::uint64_t user_limit(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == 0) return otherwise;
  const std::string_view digits = text;
  std::uint64_t limit = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), limit);
  if (error == std::errc() && end == digits.data() + digits.size()) return limit;
  throw std::invalid_argument(fmt::format(
      "{}: found '{}', expected a whole number of bytes such as 1073741824; correct the "
      "environment variable or unset it",
      variable, printable(digits.substr(0, 60))));
}

void check_user_limits() {
  user_limit(kUnpackLimit, 0);
  user_limit(kNameLimit, 0);
}

}  // namespace halfscope::log
