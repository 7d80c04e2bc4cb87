// SPDX-License-Identifier: Apache-2.0
#include "reports/export/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "halfscope/log/code_points.hpp"
#include "halfscope/version.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/no_scale.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {

namespace {

using namespace analyzers;

Json share_json(const underflow::Share& share) {
  Json to = {{"count", to_json(share.count)}, {"of", to_json(share.of)}};
  const bool exact = share.low() == share.high();
  to["share"] = exact ? Json(share.low()) : Json::array({share.low(), share.high()});
  return to;
}

Json limit_json(const recommend::Limit& limit, bool several_logs) {
  Json to = {{"name", limit.name}, {"step", limit.step}, {"max_abs", number_json(limit.max_abs)}};
  if (limit.censored) to["censored"] = true;
  if (limit.bounded) to["bounded"] = true;
  if (limit.from_scalars) to["from_scalars"] = true;
  if (limit.skipped_at) to["skipped_at"] = number_json(*limit.skipped_at);
  if (limit.first_step) to["first_step"] = *limit.first_step;
  if (limit.numbered) to["numbered"] = true;
  if (limit.nan_at) to["nan_at"] = number_json(*limit.nan_at);
  if (several_logs) to["log"] = limit.log;
  return to;
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

namespace {

/// Returns the JSON escape of a code point; above U+FFFF, two surrogates.
std::string escape_of(char32_t c) {
  const auto unit = [](std::uint32_t value) { return fmt::format("\\u{:04x}", value); };
  if (c < 0x10000) return unit(c);
  const std::uint32_t above = c - 0x10000;
  return unit(0xD800 + (above >> 10)) + unit(0xDC00 + (above & 0x3FF));
}

}  // namespace

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

namespace {

/// Adds the scale and the limits that decide it.
void put_scale(Json& to, const recommend::Recommendation& r) {
  to["schema"] = kJsonSchema;
  to["halfscope"] = kVersion;
  to["logs"] = r.logs;
  to["format"] = r.format;
  to["static_scale"] = power_json(r.static_log2);
  to["highest"] = power_json(r.highest_log2);
  if (r.highest_if_half_log2) to["highest_if_half"] = power_json(r.highest_if_half_log2);
  to["lowest"] = power_json(r.lowest_log2);
  const std::string reason = answer::reason_json_text(r);
  to["reason"] = reason.empty() ? Json(nullptr) : Json(reason);
  to["roles_found"] = r.roles_found;
  to["nonfinite_steps"] = r.nonfinite_steps;
  if (!r.overflow_without_cure.empty()) to["overflow_without_cure"] = r.overflow_without_cure;
  if (r.limited_by) to["limited_by"] = limit_json(*r.limited_by, r.logs.size() > 1);
}

/// Adds the values that become zero at the scale.
void put_underflow(Json& to, const recommend::Recommendation& r) {
  if (r.static_log2 || r.underflow_not_identifiable) {
    to["underflow_not_identifiable"] = r.underflow_not_identifiable;
  }
  if (r.lowest_at_least_log2) to["lowest_at_least"] = power_json(r.lowest_at_least_log2);
  if (r.lowest_if_zeros_log2) to["lowest_if_zeros"] = power_json(r.lowest_if_zeros_log2);
  if (!r.static_log2) return;
  to["above_target"] = r.above_target;
  to["headroom_bits"] = number_json(r.headroom_bits);
  to["flushed_at_1"] = share_json(r.flushed_at_1);
  to["flushed_at_recommended"] = share_json(r.flushed_at_recommended);
}

/// Adds the values lost if each tensor has its own scale; only for a target of 8 bits. The values
/// lost with a single scale are in `flushed_at_recommended`.
void put_own_scales(Json& to, const underflow::Analysis& analysis) {
  const auto each = answer::each_scaled(analysis);
  if (!each) return;
  const auto& [all, gradients] = *each;
  to["own_scales"] = {{"tensors", all.tensors},
                      {"fit", all.fit},
                      {"flushed_to_zero",
                       share_json(underflow::Share{gradients.zero, Interval(gradients.values)})}};
}

}  // namespace

Json to_json(const Study& study) {
  Json to;
  put_scale(to, study.advice);
  put_advice(to, study.advice);
  put_cures(to, study);
  put_underflow(to, study.advice);
  put_own_scales(to, study.analysis);
  put_overflow(to, study.analysis, study.overflow);
  put_adam(to, study);
  put_layers(to, study);
  put_quantised(to, study, false);
  put_timeline(to, study);
  put_gaps(to, study);
  put_answer(to, study);
  return to;
}

}  // namespace halfscope::reports::exports
