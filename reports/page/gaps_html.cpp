// SPDX-License-Identifier: Apache-2.0
#include "reports/page/gaps_html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/answer/gaps.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/marked_html.hpp"

namespace halfscope::reports::page {

using answer::LogGaps;

namespace {

/// Number of sentences that are visible; the others are collapsed.
constexpr std::size_t kShown = 3;

std::string items_html(const LogGaps& gaps, std::size_t first, std::size_t end) {
  std::string out = "<ul>";
  for (std::size_t i = first; i < end; ++i) {
    out += "<li>" + answer::html_escape(gaps.unknown[i].text) + "</li>\n";
  }
  return out + "</ul>\n";
}

/// Returns one log's gaps, with a heading if there are several logs.
std::string log_html(const LogGaps& gaps, bool several_logs) {
  const std::size_t all = gaps.unknown.size(), shown = std::min(kShown, all);
  std::string out =
      several_logs ? fmt::format("<h3>{}</h3>\n", marked_html(title_of(gaps, true))) : "";
  out += items_html(gaps, 0, shown);
  if (shown < all) {
    out += fmt::format("<details><summary>{} more</summary>{}</details>\n", all - shown,
                       items_html(gaps, shown, all));
  }
  return out;
}

std::string recording_html(const answer::Recording& recording) {
  return fmt::format(
      "<p class=\"note\">{}</p>\n<div class=\"paste\"><pre "
      "tabindex=\"0\">{}</pre><button type=\"button\">Copy</button></div>\n",
      answer::html_escape(recording.sentence()), answer::html_escape(recording.lines));
}

}  // namespace

std::string gaps_html(const analyzers::underflow::Analysis& analysis) {
  const std::vector<LogGaps> all = answer::could_not_tell(analysis);
  if (all.empty()) return "";
  std::string out = fmt::format(
      "\n\n<section id=\"gaps\" aria-labelledby=\"h-gaps\">\n<h2 id=\"h-gaps\">{}</h2>\n",
      all.size() > 1 ? std::string(answer::kGapsTitle) : marked_html(title_of(all.front(), false)));
  std::string lines;
  for (const LogGaps& gaps : all) {
    out += log_html(gaps, all.size() > 1);
    const std::string recording = recording_html(gaps.recording);
    if (lines.find(recording) == lines.npos) lines += recording;
  }
  return out + lines + "</section>";
}

}  // namespace halfscope::reports::page
