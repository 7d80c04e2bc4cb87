// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/operation_words.hpp"

#include <fmt/format.h>

#include <string>

#include "reports/answer/formats.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::compare::Operation;
using analyzers::compare::Operations;
using analyzers::compare::OperationSums;
using analyzers::compare::RunAndEmulation;

namespace {

/// Returns a relative error: "0.00098".
std::string error_text(double relative) { return fmt::format("{:.2g}", relative); }

/// Returns whether rounding explains how an operation differs. For sums in binary32 that is
/// unknown.
std::string_view kind_of(const Operation& o) {
  if (o.different() == 0) return "identical";
  if (o.dtype == Dtype::f32) return "different";
  return o.beyond_rounding() ? "more than rounding" : "rounding";
}

std::string identical_text(const OperationSums& s) {
  if (s.identical == s.elements) {
    return fmt::format("{}: all {} results of {} identical.", people_say(s.dtype),
                       count_text(s.elements), plural(s.operations, "operation"));
  }
  std::string out =
      fmt::format("{}: {} of {} results identical ({} not), {} within one ulp ({} not)",
                  people_say(s.dtype), share_text(s.identical, s.elements), count_text(s.elements),
                  count_text(s.elements - s.identical), share_text(s.within_one_ulp, s.elements),
                  count_text(s.elements - s.within_one_ulp));
  if (s.identical_operations != 0) {
    const std::uint64_t others = s.elements - s.elements_of_different;
    out += fmt::format("; {} of {} operations identical throughout, {} of the others' results",
                       count_text(s.identical_operations), count_text(s.operations),
                       share_text(s.identical - others, s.elements_of_different));
  }
  return out + ".";
}

std::string worst_text(const Operations& all, const OperationSums& s) {
  const Operation& o = all.worst(s.dtype);
  std::string out = fmt::format(
      "{}, worst: {}: {} of {} differ, by {} at most, relative error of a call {} at most",
      people_say(s.dtype), code(o.name), count_text(o.different()), count_text(o.elements),
      plural(o.largest_ulps, "ulp"), error_text(o.largest_relative_error));
  if (o.not_finite_in_one != 0) {
    out += fmt::format("; {} not finite in one alone", count_text(o.not_finite_in_one));
  }
  return out + ".";
}

std::string verdict_text(const OperationSums& s) {
  if (s.dtype == Dtype::f32) return "";
  if (s.beyond_rounding == 0) {
    return fmt::format("{}: no operation differs by more than a last rounding explains.",
                       people_say(s.dtype));
  }
  return fmt::format(
      "{}: {} of {} differ by more than a last rounding explains: results of several ulps and a "
      "relative "
      "error above {}, or not finite in one alone.",
      people_say(s.dtype), count_text(s.beyond_rounding), plural(s.operations, "operation"),
      error_text(s.spacing()));
}

/// Returns the most ulps of an operation that rounding still explains. Empty if none has 2 or more.
std::string ulps_text(const Operations& all, const OperationSums& s) {
  const Operation* most = nullptr;
  for (const Operation& o : all.all) {
    if (o.dtype != s.dtype || o.largest_ulps < 2 || o.beyond_rounding()) continue;
    if (most == nullptr || o.largest_ulps > most->largest_ulps) most = &o;
  }
  if (most == nullptr) return "";
  return fmt::format(
      "{}: up to {} in {}: where a sum cancels to nearly zero, many ulps are next to nothing; "
      "relative error of a call {} at most.",
      people_say(s.dtype), plural(most->largest_ulps, "ulp"), code(most->name),
      error_text(most->largest_relative_error));
}

Cell count_cell(std::uint64_t count) { return {count_text(count), static_cast<double>(count)}; }

Cell share_cell(std::uint64_t count, std::uint64_t of) {
  return {share_text(count, of), of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of),
          fmt::format("{} of {}", count_text(count), count_text(of))};
}

/// Returns a cell with both counts, or with one if they are equal.
Cell both_cell(const RunAndEmulation& both) {
  const std::string run = count_text(both.run), emulated = count_text(both.emulated);
  return {both.run == both.emulated ? run : fmt::format("{} / {}", run, emulated),
          static_cast<double>(both.run), fmt::format("{} in the run, {} emulated", run, emulated)};
}

Row row_of(const Operation& o) {
  return {{{code(o.name)},
           {people_say(o.dtype)},
           {std::string(kind_of(o))},
           {fmt::format("{} of {}", count_text(o.different()), count_text(o.elements)),
            static_cast<double>(o.different())},
           share_cell(o.identical, o.elements),
           share_cell(o.within_one_ulp, o.elements),
           count_cell(o.largest_ulps),
           {error_text(o.largest_relative_error), o.largest_relative_error},
           count_cell(o.not_finite_in_one),
           both_cell(o.zero),
           both_cell(o.subnormal),
           both_cell(o.not_finite)}};
}

Table operations_table(const Operations& operations, std::string_view run) {
  Table out{
      .title = fmt::format("Operations of {}, in each format worst first", run),
      .note =
          "The run's device computed each, and the CPU emulated it from the device's inputs. "
          "Relative error: Euclidean, of one call's results together. Zeros and the like: one "
          "number where run and emulation have the same, else run / emulation.",
      .headings = {"operation of shapes", "format", "difference", "different", "identical",
                   "within one ulp", "largest, ulps", "relative error", "not finite in one alone",
                   "zeros", "subnormal", "NaN, infinite"},
      .narrow = 8};
  for (const Operation& o : operations.all) out.rows.push_back(row_of(o));
  return out;
}

}  // namespace

Section operations_section(const Operations& operations, std::string_view run) {
  const std::string steps =
      operations.first_step == operations.last_step
          ? fmt::format("step {}", operations.first_step)
          : fmt::format("steps {} to {}", operations.first_step, operations.last_step);
  Section out{
      fmt::format("Operations on the same inputs: {} against its emulation, {}", run, steps)};
  for (const OperationSums& sums : operations.formats) {
    out.sentences.push_back(identical_text(sums));
    if (sums.identical == sums.elements) continue;
    out.sentences.push_back(worst_text(operations, sums));
    out.sentences.push_back(verdict_text(sums));
    out.sentences.push_back(ulps_text(operations, sums));
  }
  std::erase(out.sentences, "");
  out.tables.push_back(operations_table(operations, run));
  return out;
}

}  // namespace halfscope::reports::answer
