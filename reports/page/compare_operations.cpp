// SPDX-License-Identifier: Apache-2.0
#include "reports/page/compare_operations.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"
#include "reports/answer/operation_words.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/data_table.hpp"

namespace halfscope::reports::page {

using analyzers::compare::Operation;
using analyzers::compare::Operations;
using analyzers::compare::OperationSums;
using analyzers::compare::RunAndEmulation;

namespace {

Cell count_cell(std::uint64_t count) {
  return {.html = answer::count_text(count), .key = static_cast<double>(count)};
}

Cell share_cell(std::uint64_t count, std::uint64_t of) {
  const double key = of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of);
  return {.html = answer::html_escape(answer::share_text(count, of)),
          .key = key,
          .title = fmt::format("{} of {}", answer::count_text(count), answer::count_text(of))};
}

/// One number where both have the same.
Cell both_cell(const RunAndEmulation& both) {
  const std::string run = answer::count_text(both.run);
  return {
      .html = both.run == both.emulated
                  ? run
                  : fmt::format("{} / {}", run, answer::count_text(both.emulated)),
      .key = static_cast<double>(both.run),
      .title = fmt::format("{} in the run, {} emulated", run, answer::count_text(both.emulated))};
}

Row row_of(const Operation& o) {
  return {.cells = {{.html = breakable_name(o.name)},
                    {.html = std::string(answer::format_text(o.dtype))},
                    {.html = std::string(answer::kind_of(o))},
                    {.html = fmt::format("{} of {}", answer::count_text(o.different()),
                                         answer::count_text(o.elements)),
                     .key = static_cast<double>(o.different())},
                    share_cell(o.identical, o.elements),
                    share_cell(o.within_one_ulp, o.elements),
                    count_cell(o.largest_ulps),
                    {.html = answer::error_text(o.largest_relative_error),
                     .key = o.largest_relative_error},
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

std::string list(const std::vector<answer::FormatLines>& formats) {
  std::string out = "<ul>\n";
  for (const answer::FormatLines& format : formats) {
    out += "<li>" + answer::html_escape(format.sum);
    if (!format.details.empty()) {
      out += "<ul>\n";
      for (const std::string& line : format.details) {
        out += "<li>" + answer::html_escape(line) + "</li>\n";
      }
      out += "</ul>";
    }
    out += "</li>\n";
  }
  return out + "</ul>\n";
}

std::string of_run(const Operations& operations, std::string_view run) {
  return fmt::format("<h3>{}</h3>\n",
                     answer::html_escape(answer::operations_heading(operations, run))) +
         list(answer::operations_lines(operations)) + table(operations, run);
}

}  // namespace

std::string operations_section(const analyzers::compare::Comparison& c) {
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

}  // namespace halfscope::reports::page
