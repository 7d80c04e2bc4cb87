// SPDX-License-Identifier: Apache-2.0
#include "reports/page/peaks_html.hpp"

#include <fmt/format.h>

#include "reports/answer/peaks_words.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/data_table.hpp"

namespace halfscope::reports::page {

using analyzers::underflow::TensorPeaks;

std::string peaks_html(const analyzers::Findings& found) {
  const std::vector<TensorPeaks> order = answer::peaks_by_harm(found.peaks);
  if (order.empty()) return "";
  std::vector<Row> rows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TensorPeaks& t = order[i];
    const Cell at = t.max_abs ? Cell{std::to_string(t.max_step), static_cast<double>(t.max_step)}
                              : Cell{"", -1};
    const Cell smallest = t.min_abs_nonzero
                              ? Cell{fmt::format("{:.4g}", *t.min_abs_nonzero), *t.min_abs_nonzero}
                              : Cell{"not known", -1, "", true};
    rows.push_back({{{breakable_name(t.name)},
                     {std::string(log::name_of(t.role))},
                     {answer::html_escape(answer::largest_text(t)), t.max_abs.value_or(-1)},
                     at,
                     smallest,
                     {answer::html_escape(answer::peaks_verdict(t)), static_cast<double>(i)}}});
  }
  return fmt::format("<p class=\"note\">{}.</p>\n",
                     answer::html_escape(answer::peaks_title(order, found.analysis))) +
         data_table("Largest magnitudes",
                    {"tensor", "role", "largest magnitude", "at step", "smallest is at least",
                     "in " + answer::html_escape(found.analysis.target.name)},
                    rows);
}

}  // namespace halfscope::reports::page
