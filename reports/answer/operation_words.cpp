// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/operation_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::compare::Operation;
using analyzers::compare::Operations;
using analyzers::compare::OperationSums;

namespace {

std::string identical_line(const OperationSums& s) {
  if (s.identical == s.elements) {
    return fmt::format("{}: all {} results of {} identical", format_text(s.dtype),
                       count_text(s.elements), plural(s.operations, "operation"));
  }
  std::string out =
      fmt::format("{}: {} of {} results identical ({} not), {} within one ulp ({} not)",
                  format_text(s.dtype), share_text(s.identical, s.elements), count_text(s.elements),
                  count_text(s.elements - s.identical), share_text(s.within_one_ulp, s.elements),
                  count_text(s.elements - s.within_one_ulp));
  if (s.identical_operations != 0) {
    const std::uint64_t others = s.elements - s.elements_of_different;
    out += fmt::format("; {} of {} operations identical throughout, {} of the others' results",
                       count_text(s.identical_operations), count_text(s.operations),
                       share_text(s.identical - others, s.elements_of_different));
  }
  return out;
}

/// How far an operation is from its emulation.
std::string distance_text(const Operation& o) {
  std::string out =
      fmt::format("{} of {} differ, by {} at most, relative error of a call {} at most",
                  count_text(o.different()), count_text(o.elements), plural(o.largest_ulps, "ulp"),
                  error_text(o.largest_relative_error));
  if (o.not_finite_in_one != 0) {
    out += fmt::format("; {} not finite in one alone", count_text(o.not_finite_in_one));
  }
  return out;
}

std::string worst_line(const Operations& all, const OperationSums& s) {
  const Operation& worst = all.worst(s.dtype);
  return fmt::format("worst: {}: {}", log::printable(worst.name), distance_text(worst));
}

std::string verdict_line(const OperationSums& s) {
  if (s.beyond_rounding == 0) {
    return "no operation differs by more than a last rounding explains";
  }
  return fmt::format(
      "{} of {} by more than a last rounding explains: results of several ulps and a relative "
      "error above {}, or not finite in one alone",
      count_text(s.beyond_rounding), plural(s.operations, "operation"), error_text(s.spacing()));
}

/// The most ulps of an operation that rounding explains all the same; empty where none are many.
std::string ulps_line(const Operations& all, const OperationSums& s) {
  const Operation* most = nullptr;
  for (const Operation& o : all.all) {
    if (o.dtype != s.dtype || o.largest_ulps < 2 || o.beyond_rounding()) continue;
    if (most == nullptr || o.largest_ulps > most->largest_ulps) most = &o;
  }
  if (most == nullptr) return "";
  return fmt::format(
      "up to {} in {}: where a sum cancels to nearly zero, many ulps are next to nothing; "
      "relative error of a call {} at most",
      plural(most->largest_ulps, "ulp"), log::printable(most->name),
      error_text(most->largest_relative_error));
}

}  // namespace

std::string_view format_text(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return "FP16";
    case Dtype::bf16: return "BF16";
    case Dtype::f32: return "FP32";
    default: return name_of(dtype);
  }
}

std::string error_text(double relative) { return fmt::format("{:.2g}", relative); }

std::string_view kind_of(const Operation& o) {
  if (o.different() == 0) return "identical";
  if (o.dtype == Dtype::f32) return "different";
  return o.beyond_rounding() ? "more than rounding" : "rounding";
}

std::string operations_heading(const Operations& operations, std::string_view run) {
  const std::string steps =
      operations.first_step == operations.last_step
          ? fmt::format("step {}", operations.first_step)
          : fmt::format("steps {} to {}", operations.first_step, operations.last_step);
  return fmt::format("Operations on the same inputs: {} against its emulation, {}", run, steps);
}

std::vector<FormatLines> operations_lines(const Operations& operations) {
  std::vector<FormatLines> out;
  for (const OperationSums& sums : operations.formats) {
    FormatLines& lines = out.emplace_back();
    lines.sum = identical_line(sums);
    if (sums.identical == sums.elements) continue;
    lines.details.push_back(worst_line(operations, sums));
    if (sums.dtype != Dtype::f32) lines.details.push_back(verdict_line(sums));
    if (std::string ulps = ulps_line(operations, sums); !ulps.empty()) {
      lines.details.push_back(std::move(ulps));
    }
  }
  return out;
}

}  // namespace halfscope::reports::answer
