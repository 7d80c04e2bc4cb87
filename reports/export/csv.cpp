// SPDX-License-Identifier: Apache-2.0
#include "reports/export/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace halfscope::reports::exports {
namespace {

using namespace analyzers;

/// Returns a quoted field (RFC 4180).
std::string csv_text(std::string_view text) {
  std::string field = "\"";
  for (const char c : csv_name(text)) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + "\"";
}

std::string count_field(const Interval& count) {
  return count.exact() ? fmt::format("{}", count.low)
                       : fmt::format("{}..{}", count.low, count.high);
}

}  // namespace

std::string csv_name(std::string_view name) {
  std::string text = log::printable(name);
  // Formula signs in ASCII and full width. A tab or CR also starts a formula, but is not printable.
  constexpr std::string_view kFormula[] = {"=", "+", "-", "@", "＝", "＋", "－", "＠"};
  const auto begins = [&](std::string_view sign) { return text.starts_with(sign); };
  return std::ranges::any_of(kFormula, begins) ? "'" + text : text;
}

std::string to_csv(const underflow::Analysis& analysis) {
  std::string csv =
      "log,name,role,source_dtype,step,total,zero,nan,inf,flushed_to_zero,subnormal,normal,"
      "overflow,"
      "max_abs\r\n";
  for (const underflow::TensorFindings& t : analysis.tensors()) {
    for (const underflow::StepFindings& s : t.per_step) {
      const underflow::Counts& c = s.counts;
      fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n",
                     csv_text(*t.log), csv_text(t.name), log::name_of(t.role),
                     t.source_dtype ? halfscope::name_of(*t.source_dtype) : "", s.step, c.total,
                     count_field(c.zero), c.nonfinite_known ? count_field(c.nan) : "",
                     c.nonfinite_known ? count_field(c.inf) : "",
                     count_field(c.classes.flushed_to_zero), count_field(c.classes.subnormal),
                     count_field(c.classes.normal), count_field(c.classes.overflow),
                     s.max_abs ? fmt::format("{}", *s.max_abs) : "");
    }
  }
  return csv;
}

}  // namespace halfscope::reports::exports
