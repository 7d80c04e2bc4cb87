// SPDX-License-Identifier: Apache-2.0
#include "reports/page/compare_page.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "reports/answer/compare_words.hpp"
#include "reports/answer/text.hpp"
#include "reports/export/json.hpp"
#include "reports/page/compare_operations.hpp"
#include "reports/page/island.hpp"
#include "reports/page/page.hpp"
#include "reports/page/template.hpp"

namespace halfscope::reports::page {

using analyzers::compare::Both;
using analyzers::compare::ComparedTensor;
using analyzers::compare::Comparison;
using analyzers::compare::RunTotals;

using json = nlohmann::ordered_json;

namespace {

std::string about_html(const Comparison& c) {
  return fmt::format("A: <code>{}</code>, B: <code>{}</code>, in {}", answer::html_name(c.logs.a),
                     answer::html_name(c.logs.b), answer::html_escape(answer::counted_for_text(c)));
}

std::string tile(std::string_view title, const std::string& a, const std::string& b,
                 const std::string& detail) {
  return fmt::format(
      "<div class=\"tile\"><h3>{}</h3><p class=\"value\">{} \u2192 {}</p><p class=\"detail\">{}</p>"
      "</div>\n",
      title, answer::html_escape(a), answer::html_escape(b), answer::html_escape(detail));
}

std::string range_tile(const Comparison& c) {
  const RunTotals &a = c.runs.a, &b = c.runs.b;
  return tile("NaN, infinite or overflow", answer::count_text(a.not_finite_all),
              answer::count_text(b.not_finite_all),
              fmt::format("values of every role; gradients: {} \u2192 {}",
                          answer::count_text(a.not_finite), answer::count_text(b.not_finite)));
}

std::string gradient_tiles(const Comparison& c) {
  const RunTotals &a = c.runs.a, &b = c.runs.b;
  if (c.gradients == 0) return "";
  const auto share = [](const Interval& count, const RunTotals& run) {
    return answer::share_of_total(count, run.gradients.total);
  };
  std::string zeros = fmt::format("of {} values; recorded as zero: {} \u2192 {}",
                                  answer::count_text(b.gradients.total), share(a.gradients.zero, a),
                                  share(b.gradients.zero, b));
  if (c.new_zeros) zeros += "; zero in B and not in A: " + answer::count_text(*c.new_zeros);
  return tile("Gradients lost to zero, A \u2192 B", share(a.lost, a), share(b.lost, b), zeros) +
         tile("Loss scale", answer::scales_text(a), answer::scales_text(b), "that counts are for");
}

std::string update_tile(const Comparison& c) {
  const auto& [a, b] = *c.updates;
  return tile(
      "Weight updates lost", answer::lost_updates_text(c.runs.a, a),
      answer::lost_updates_text(c.runs.b, b),
      fmt::format("underflow or swamped; exactly zero: {} \u2192 {}",
                  answer::share_text(a.zero, a.pairs), answer::share_text(b.zero, b.pairs)));
}

std::string summary(const Comparison& c) {
  std::string out =
      fmt::format("<p class=\"answer\"><strong>{}</strong> {}</p>\n<div class=\"tiles even\">\n",
                  answer::html_escape(answer::comparison_verdict(c)),
                  answer::html_escape(answer::comparison_answer(c)));
  out += range_tile(c) + gradient_tiles(c);
  if (c.updates) out += update_tile(c);
  if (c.last_loss) {
    out +=
        tile(fmt::format("Loss at step {}", c.last_loss->step), answer::loss_text(c.last_loss->a),
             answer::loss_text(c.last_loss->b), "the last step both have");
  }
  if (c.runs.a.steps + c.runs.b.steps != 0) {
    out += tile("Skipped steps", answer::count_text(c.runs.a.skipped.size()),
                answer::count_text(c.runs.b.skipped.size()),
                fmt::format("of {} and {} with scalars", answer::count_text(c.runs.a.steps),
                            answer::count_text(c.runs.b.steps)));
  }
  return out + "</div>\n";
}

/// Whether there was a loss scale to be seen.
bool has_scaling(const RunTotals& run) {
  return std::any_of(run.scales.begin(), run.scales.end(),
                     [](const auto& at) { return at.second != 1; });
}

std::string loss_section(const Comparison& c) {
  const bool losses = !c.runs.a.loss.empty() || !c.runs.b.loss.empty();
  const bool scales = has_scaling(c.runs.a) || has_scaling(c.runs.b);
  if (!losses && !scales) return "";
  constexpr std::string_view kKeys =
      "<span class=\"key now\">A</span> <span class=\"key advised\">B</span>";
  std::string out = fmt::format("<section aria-labelledby=\"h-loss\">\n<h2 id=\"h-loss\">{}</h2>\n",
                                !scales  ? "Loss"
                                : losses ? "Loss and loss scale"
                                         : "Loss scale");
  out += fmt::format("<p class=\"note\">{} {}</p>\n", kKeys,
                     answer::html_escape(answer::parting_text(c)));
  if (losses) out += "<figure class=\"chart\" data-chart=\"loss\"></figure>\n";
  if (scales) {
    out +=
        "<p class=\"note\">The loss scale; triangles are skipped steps.</p>\n"
        "<figure class=\"chart\" data-chart=\"scales\"></figure>\n";
  }
  return out + "</section>\n";
}

std::string cell(double key, const std::string& text) {
  return fmt::format("<td data-v=\"{}\">{}</td>", key, answer::html_escape(text));
}

std::string share_cell(const Interval& count, const analyzers::underflow::Counts& counts) {
  const double key =
      counts.total == 0 ? 0 : static_cast<double>(count.high) / static_cast<double>(counts.total);
  return fmt::format("<td data-v=\"{}\" title=\"{} of {}\">{}</td>", key, answer::count_text(count),
                     answer::count_text(counts.total),
                     answer::html_escape(answer::share_of_total(count, counts.total)));
}

/// B's beyond A's; both with their shares where pointed at.
std::string not_finite_cell(const ComparedTensor& t) {
  const Interval &a = t.not_finite.a, &b = t.not_finite.b;
  return fmt::format(
      "<td data-v=\"{}\" title=\"A: {} ({}); B: {} ({})\">{}</td>",
      static_cast<double>(b.high) - static_cast<double>(a.high), answer::count_text(a),
      answer::html_escape(answer::share_of_total(a, t.counts.a.total)), answer::count_text(b),
      answer::html_escape(answer::share_of_total(b, t.counts.b.total)),
      answer::html_escape(answer::more_not_finite(t)));
}

template <typename T>
std::string optional_cell(const std::optional<T>& value, const std::string& text) {
  return value ? cell(static_cast<double>(*value), text) : "<td class=\"nil\">none</td>";
}

std::string row(const ComparedTensor& t, std::size_t index) {
  std::string out = fmt::format(
      "<tr data-tensor=\"{}\"><th scope=\"row\"><button type=\"button\">{}</button></th>", index,
      answer::html_name(t.name));
  out += not_finite_cell(t);
  out += share_cell(t.lost.a, t.counts.a) + share_cell(t.lost.b, t.counts.b);
  out += share_cell(t.counts.a.classes.subnormal, t.counts.a) +
         share_cell(t.counts.b.classes.subnormal, t.counts.b);
  out += t.new_zeros
             ? cell(static_cast<double>(t.new_zeros->high), answer::count_text(*t.new_zeros))
             : "<td class=\"nil\">other size</td>";
  out +=
      optional_cell(t.max_abs_shift, t.max_abs_shift ? answer::shift_text(*t.max_abs_shift) : "");
  out += optional_cell(t.median_shift, t.median_shift ? answer::signed_text(*t.median_shift) : "");
  out += optional_cell(t.largest_share_difference,
                       answer::share_text(t.largest_share_difference.value_or(0)));
  out += t.elements ? cell(static_cast<double>(t.elements->equal),
                           answer::share_text(t.elements->equal, t.elements->elements))
                    : "<td class=\"nil\">not whole</td>";
  return out + "</tr>\n";
}

std::string harmed_heading(const Comparison& c) {
  const auto harmed = static_cast<std::size_t>(
      std::count_if(c.tensors.begin(), c.tensors.end(), [](const auto& t) { return t.harmed; }));
  if (harmed == 0) return "No tensor is harmed in B; those that moved most first";
  return fmt::format("{} of {} harmed in B, worst first", answer::count_text(harmed),
                     answer::plural(c.tensors.size(), "tensor"));
}

std::string table(const Comparison& c) {
  std::string out = "<table class=\"data\" id=\"worst\"><thead><tr>";
  for (const char* heading :
       {"tensor", "NaN, inf, overflow: B less A", "lost to zero: A", "lost to zero: B",
        "subnormal: A", "subnormal: B", "zero in B, not in A", "largest: B/A, 2^",
        "median: B/A, 2^", "shift of shares", "equal elements"}) {
    out += fmt::format("<th scope=\"col\"><button type=\"button\">{}</button></th>", heading);
  }
  out += "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < c.tensors.size(); ++i) out += row(c.tensors[i], i);
  return out + "</tbody></table>\n";
}

std::string options(const Comparison& c) {
  std::string out;
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    out +=
        fmt::format("<option value=\"{}\">{}</option>\n", i, answer::html_name(c.tensors[i].name));
  }
  return out;
}

std::string notes(const Comparison& c) {
  std::vector<std::string> lines(c.notes.begin(), c.notes.end());
  for (const std::string& name : c.only.a) lines.push_back("only in A: " + name);
  for (const std::string& name : c.only.b) lines.push_back("only in B: " + name);
  if (lines.empty()) return "";
  std::string out = fmt::format("<details class=\"notes\"><summary>{}</summary><ul>\n",
                                answer::plural(lines.size(), "note"));
  for (const std::string& line : lines) out += "<li>" + answer::html_name(line) + "</li>\n";
  return out + "</ul></details>\n";
}

/// What is to be said of one tensor above its chart.
std::string facts(const ComparedTensor& t) {
  std::string out =
      fmt::format("{}; zeros: {} in A, {} in B.", answer::plural(t.steps.size(), "step"),
                  answer::count_text(t.counts.a.zero), answer::count_text(t.counts.b.zero));
  if (t.max_abs.a && t.max_abs.b) {
    out += fmt::format(" Largest: {} in A, {} in B.", answer::magnitude_text(*t.max_abs.a),
                       answer::magnitude_text(*t.max_abs.b));
  }
  if (t.elements) {
    const analyzers::compare::ElementChanges& e = *t.elements;
    out += fmt::format(
        " Of {} in whole tensors: {} equal, {} became zero, {} subnormal, {} infinite, {} NaN.",
        answer::plural(e.elements, "element"), answer::count_text(e.equal),
        answer::count_text(e.became_zero), answer::count_text(e.became_subnormal),
        answer::count_text(e.became_infinite), answer::count_text(e.became_nan));
    if (e.largest_ulps) out += fmt::format(" At most {:.4g} ulps apart.", *e.largest_ulps);
  }
  return out;
}

/// The tensor whose magnitudes moved most.
std::size_t most_moved(const Comparison& c) {
  const auto moved = [](const ComparedTensor& t) { return t.largest_share_difference.value_or(0); };
  const auto most = std::max_element(
      c.tensors.begin(), c.tensors.end(),
      [&](const ComparedTensor& x, const ComparedTensor& y) { return moved(x) < moved(y); });
  return static_cast<std::size_t>(most - c.tensors.begin());
}

json charts(const Comparison& c) {
  json out = {{"facts", json::array()}, {"first_tensor", most_moved(c)}};
  for (const ComparedTensor& t : c.tensors) out["facts"].push_back(facts(t));
  return out;
}

/// What goes where in the template: <!--halfscope:NAME-->.
Parts parts(const Comparison& c, std::string_view title) {
  return {{"title", answer::html_name(title)},
          {"about", about_html(c)},
          {"summary", summary(c)},
          {"operations", operations_section(c)},
          {"loss", loss_section(c)},
          {"heading", harmed_heading(c)},
          {"lost", answer::html_escape(answer::lost_note(c))},
          {"worst", table(c)},
          {"options", options(c)},
          {"notes", notes(c)},
          {"islands",
           json_island("comparison", exports::to_json(c)) + json_island("charts", charts(c))}};
}

}  // namespace

std::string compare_html(const Comparison& comparison, std::string_view title) {
  require_charts();
  return filled(compare_template(), parts(comparison, title));
}

void write_compare_page(const Comparison& comparison, std::string_view title,
                        const std::filesystem::path& out) {
  write_page(compare_html(comparison, title), out);
}

}  // namespace halfscope::reports::page
