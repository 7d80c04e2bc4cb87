// SPDX-License-Identifier: Apache-2.0
#include "reports/export/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "halfscope/log/code_points.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

/// Returns the JSON escape of a code point; above U+FFFF, two surrogates.
std::string escape_of(char32_t c) {
  const auto unit = [](std::uint32_t value) { return fmt::format("\\u{:04x}", value); };
  if (c < 0x10000) return unit(c);
  const std::uint32_t above = c - 0x10000;
  return unit(0xD800 + (above >> 10)) + unit(0xDC00 + (above & 0x3FF));
}

}  // namespace

Json to_json(const Interval& count) {
  if (count.exact()) return count.low;
  const bool bounded = count.high != std::numeric_limits<std::uint64_t>::max();
  return Json::array({count.low, bounded ? Json(count.high) : Json(nullptr)});
}

Json number_json(std::optional<double> x) {
  return x && std::isfinite(*x) ? Json(*x) : Json(nullptr);
}

Json power_json(std::optional<int> log2) {
  return log2 ? Json(std::ldexp(1.0, *log2)) : Json(nullptr);
}

Json pair_json(std::optional<double> low, std::optional<double> high) {
  return Json::array({number_json(low), number_json(high)});
}

std::string json_text(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto is_plain = [](char c) { return static_cast<unsigned char>(c) < 0x7F; };
  if (std::ranges::all_of(text, is_plain)) return text;
  std::string safe;
  for (std::string_view rest = text; !rest.empty();) {
    const log::CodePoint c = log::first_code_point(rest);
    if (log::is_unsafe(c.value)) {
      safe += escape_of(c.value);
    } else {
      safe += rest.substr(0, c.length);
    }
    rest.remove_prefix(c.length);
  }
  return safe;
}

}  // namespace halfscope::reports::exports
