// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/update_sums.hpp"
#include "reports/charts/charts.hpp"
#include "reports/page/data_table.hpp"
#include "reports/page/evidence.hpp"

namespace halfscope::reports::page {

using analyzers::underflow::Analysis;
using answer::Tensors;
using answer::UpdateSum;

namespace {

double ratio(std::uint64_t count, std::uint64_t of) {
  return of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of);
}

/// One arithmetic: what it loses, and a remark.
Row what_if_row(std::string name, std::uint64_t lost, std::uint64_t of, std::string remark) {
  return {{{std::move(name)},
           {answer::html_escape(answer::share_text(lost, of)), ratio(lost, of)},
           {fmt::format("{} of {}", answer::count_text(lost), answer::count_text(of)),
            static_cast<double>(lost)},
           {std::move(remark)}}};
}

Row outcomes_row(const std::string& name, const UpdateOutcomes& outcomes, std::uint64_t of) {
  std::string remark = fmt::format("{} too small for the format, {} rounded away",
                                   answer::html_escape(answer::share_text(outcomes.underflow, of)),
                                   answer::html_escape(answer::share_text(outcomes.swamped, of)));
  if (outcomes.overflow > 0) {
    remark += fmt::format(", {} overflow",
                          answer::html_escape(answer::share_text(outcomes.overflow, of)));
  }
  return what_if_row(name, outcomes.lost(), of, remark);
}

std::string factor_text(int log2) {
  return log2 >= 0 ? fmt::format("{}", std::uint64_t{1} << log2)
                   : fmt::format("1/{}", std::uint64_t{1} << -log2);
}

/// After how many equal updates half of the FP16 copies have moved.
std::string first_moves(const UpdateWhatIf& what_if, std::uint64_t of) {
  std::uint64_t moved = 0;
  for (const auto& [log2, count] : what_if.first_move) {
    moved += count;
    if (moved >= of - moved) {
      return log2 == 0 ? "half of the copies in the format move at the first update"
                       : fmt::format(
                             "half of the copies in the format have moved after {} to {} "
                             "equal updates",
                             std::uint64_t{1} << log2, (std::uint64_t{2} << log2) - 1);
    }
  }
  return "most copies in the format never move";
}

void add_what_ifs(const UpdateWhatIf& what_if, std::uint64_t of, const std::string& format,
                  std::vector<Row>& rows) {
  rows.push_back(
      what_if_row("FP32 master weights", what_if.master_never, of, first_moves(what_if, of)));
  rows.push_back(
      outcomes_row("bfloat16 weights", what_if.bfloat16.half, what_if.bfloat16.updates()));
  const KahanMoves& kahan = what_if.kahan;
  const std::uint64_t still = of - std::min(of, kahan.moved);
  rows.push_back(what_if_row(
      fmt::format("{} with Kahan's compensation", format), still, of,
      fmt::format(
          "never move in {} equal updates; without it {}", answer::count_text(kahan.steps),
          answer::html_escape(answer::share_text(of - std::min(of, kahan.moved_plain), of)))));
  for (const StochasticMoves& moves : what_if.stochastic) {
    const double expected = moves.expected_moves();
    rows.push_back(what_if_row(
        fmt::format("{}, stochastic rounding with {} bits", format, moves.random_bits), moves.never,
        of,
        fmt::format(
            "can never move; {} move on average",
            answer::html_escape(
                of == 0 ? "none" : answer::share_text(expected / static_cast<double>(of))))));
  }
  for (const auto& [log2, counts] : what_if.learning_rate) {
    if (log2 == 0) continue;
    rows.push_back(
        outcomes_row(fmt::format("{}, learning rate times {}", format, factor_text(log2)),
                     counts.half, counts.updates()));
  }
}

std::string what_if_table(const Analysis& analysis, const UpdateSum& sum) {
  const UpdateCounts& counts = sum.table.counts;
  const std::uint64_t of = counts.updates();
  const std::string format = answer::people_say(analysis.target.name);
  std::vector<Row> rows = {
      outcomes_row("pure " + format, counts.half, of),
      outcomes_row("computed in FP32, stored in " + format, counts.fused, of),
      what_if_row(fmt::format("by the rule of thumb ({} times)",
                              std::uint64_t{1} << analysis.target.format.precision),
                  counts.rule_2048, of, "not exact: shown beside the exact count")};
  rows[0].marked = true;
  if (sum.what_if) add_what_ifs(*sum.what_if, of, format, rows);
  return data_table("What becomes of updates in other arithmetic",
                    {"weights kept in", "lost", "updates", "of them"}, rows);
}

std::string source_text(const Tensors& tensors) {
  std::vector<std::string> names;
  for (const auto* tensor : tensors) {
    const std::string name(analyzers::underflow::name_of(tensor->updates->source));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

std::string counts_text(const Tensors& tensors, const UpdateSum& sum) {
  const UpdateCounts& counts = sum.table.counts;
  std::string out =
      fmt::format("{}: {} with a weight each, of them {} zero and {} not finite. Source: {}.",
                  answer::plural(sum.weights, "weight tensor"),
                  answer::plural(counts.pairs, "update"), answer::count_text(counts.zero),
                  answer::count_text(counts.nonfinite), answer::html_escape(source_text(tensors)));
  if (sum.undetermined > 0) {
    out +=
        fmt::format(" {} more are differences of zero: lost updates among them cannot be counted.",
                    answer::count_text(sum.undetermined));
  }
  return out;
}

}  // namespace

std::string per_log(const Analysis& analysis,
                    const std::function<std::string(std::size_t log)>& block) {
  std::string out;
  for (std::size_t i = 0; i < analysis.logs.size(); ++i) {
    const std::string text = block(i);
    out += fmt::format("<div data-log=\"{}\">{}</div>\n", i,
                       text.empty() ? "<p class=\"note\">The log has none of this.</p>" : text);
  }
  return out;
}

std::string updates_html(const Analysis& analysis) {
  if (answer::all_updates(analysis).weights == 0) return "";
  return per_log(analysis, [&](std::size_t log) -> std::string {
    const Tensors tensors = answer::with_updates(answer::of_log(analysis.logs[log]));
    if (tensors.empty()) return "";
    const UpdateSum sum = answer::sum_updates(tensors);
    return "<h3>The same updates in other arithmetic</h3>\n<p class=\"note\">" +
           counts_text(tensors, sum) + "</p>\n" + what_if_table(analysis, sum);
  });
}

std::string weight_options_html(const Analysis& analysis) {
  std::string out = "<option value=\"all\">all weights</option>";
  for (std::size_t log = 0; log < analysis.logs.size(); ++log) {
    std::size_t shown = 0;
    for (const auto* tensor : answer::with_updates(answer::of_log(analysis.logs[log]))) {
      if (++shown > charts::kWeightsDrawn) break;
      out +=
          fmt::format("<option value=\"{}\" data-log=\"{}\">{}</option>\n",
                      analysis.tensors().index_of(*tensor), log, answer::html_name(tensor->name));
    }
  }
  return out;
}

}  // namespace halfscope::reports::page
