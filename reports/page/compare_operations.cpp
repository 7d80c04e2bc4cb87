// SPDX-License-Identifier: Apache-2.0
#include "reports/page/compare_operations.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"
#include "reports/page/data_table.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports {

using analyzers::Operation;
using analyzers::Operations;
using analyzers::OperationSums;
using analyzers::RunAndEmulation;

namespace {

std::string_view format_text(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return "FP16";
    case Dtype::bf16: return "BF16";
    case Dtype::f32: return "FP32";
    default: return name_of(dtype);
  }
}

std::string error_text(double relative) { return fmt::format("{:.2g}", relative); }

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
      count_text(s.beyond_rounding), plural(s.operations, "operation"),
      error_text(analyzers::spacing(s.dtype)));
}

/// The most ulps of an operation that rounding explains all the same; empty where none are many.
std::string ulps_line(const Operations& all, const OperationSums& s) {
  const Operation* most = nullptr;
  for (const Operation& o : all.all) {
    if (o.dtype != s.dtype || o.largest_ulps < 2 || beyond_rounding(o)) continue;
    if (most == nullptr || o.largest_ulps > most->largest_ulps) most = &o;
  }
  if (most == nullptr) return "";
  return fmt::format(
      "up to {} in {}: where a sum cancels to nearly zero, many ulps are next to nothing; "
      "relative error of a call {} at most",
      plural(most->largest_ulps, "ulp"), log::printable(most->name),
      error_text(most->largest_relative_error));
}

// --- the page

/// "identical", or whether rounding explains the difference; binary32 sums have no such limit.
std::string_view kind_of(const Operation& o) {
  if (o.different() == 0) return "identical";
  if (o.dtype == Dtype::f32) return "different";
  return beyond_rounding(o) ? "more than rounding" : "rounding";
}

Cell count_cell(std::uint64_t count) {
  return {.html = count_text(count), .key = static_cast<double>(count)};
}

Cell share_cell(std::uint64_t count, std::uint64_t of) {
  const double key = of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of);
  return {.html = html_escape(share_text(count, of)),
          .key = key,
          .title = fmt::format("{} of {}", count_text(count), count_text(of))};
}

/// One number where both have the same.
Cell both_cell(const RunAndEmulation& both) {
  const std::string run = count_text(both.run);
  return {.html = both.run == both.emulated
                      ? run
                      : fmt::format("{} / {}", run, count_text(both.emulated)),
          .key = static_cast<double>(both.run),
          .title = fmt::format("{} in the run, {} emulated", run, count_text(both.emulated))};
}

Row row_of(const Operation& o) {
  return {
      .cells = {{.html = breakable_name(o.name)},
                {.html = std::string(format_text(o.dtype))},
                {.html = std::string(kind_of(o))},
                {.html = fmt::format("{} of {}", count_text(o.different()), count_text(o.elements)),
                 .key = static_cast<double>(o.different())},
                share_cell(o.identical, o.elements),
                share_cell(o.within_one_ulp, o.elements),
                count_cell(o.largest_ulps),
                {.html = error_text(o.largest_relative_error), .key = o.largest_relative_error},
                count_cell(o.not_finite_in_one),
                both_cell(o.zero),
                both_cell(o.subnormal),
                both_cell(o.not_finite)}};
}

std::string table(const Operations& operations, std::string_view run) {
  std::vector<Row> rows;
  for (const Operation& o : operations.all) rows.push_back(row_of(o));
  return data_table(fmt::format("Operations of {}", run),
                    {"operation of shapes", "format", "difference", "different", "identical",
                     "within one ulp", "largest, ulps", "relative error", "not finite in one alone",
                     "zeros", "subnormal", "NaN, infinite"},
                    rows);
}

std::string list(const std::vector<FormatLines>& formats) {
  std::string out = "<ul>\n";
  for (const FormatLines& format : formats) {
    out += "<li>" + html_escape(format.sum);
    if (!format.details.empty()) {
      out += "<ul>\n";
      for (const std::string& line : format.details) out += "<li>" + html_escape(line) + "</li>\n";
      out += "</ul>";
    }
    out += "</li>\n";
  }
  return out + "</ul>\n";
}

std::string of_run(const Operations& operations, std::string_view run) {
  return fmt::format("<h3>{}</h3>\n", html_escape(operations_heading(operations, run))) +
         list(operations_lines(operations)) + table(operations, run);
}

}  // namespace

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

std::string operations_section(const analyzers::Comparison& c) {
  if (!c.operations.a && !c.operations.b) return "";
  std::string out =
      "<section id=\"operations\" aria-labelledby=\"h-operations\">\n"
      "<h2 id=\"h-operations\">Operations against their emulation</h2>\n";
  if (c.operations.a) out += of_run(*c.operations.a, "A");
  if (c.operations.b) out += of_run(*c.operations.b, "B");
  return out +
         "<p class=\"note\">Every operation of the recorded steps computed by the run's device and "
         "emulated on the CPU, from the device's own inputs; worst first. Relative error: "
         "Euclidean, "
         "of one call's results together. Where a sum cancels to nearly zero, many ulps are next "
         "to "
         "nothing. Zeros and the like: one number where run and emulation have the same, else run "
         "/ "
         "emulation.</p>\n</section>\n";
}

}  // namespace halfscope::reports
