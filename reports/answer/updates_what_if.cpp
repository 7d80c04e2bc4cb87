// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/updates.hpp"

namespace halfscope::reports::answer {

namespace {

/// Returns a row for one arithmetic: the lost updates, and how they are lost.
Row row_of(std::string name, std::uint64_t lost, std::uint64_t of, std::string how) {
  const double share = of == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(of);
  return {{{std::move(name)},
           {share_text(lost, of), share},
           {count_text(lost), static_cast<double>(lost)},
           {std::move(how)}}};
}

Row outcomes_row(std::string name, const UpdateOutcomes& outcomes, std::uint64_t of) {
  std::string how =
      fmt::format("{} too small for the format, {} rounded away",
                  share_text(outcomes.underflow, of), share_text(outcomes.swamped, of));
  if (outcomes.overflow > 0) {
    how += fmt::format("; {} make the weight infinite", share_text(outcomes.overflow, of));
  }
  return row_of(std::move(name), outcomes.lost(), of, std::move(how));
}

std::string factor_text(int log2) {
  return log2 >= 0 ? fmt::format("{}", std::uint64_t{1} << log2)
                   : fmt::format("1/{}", std::uint64_t{1} << -log2);
}

/// Returns how many 16-bit copies change at the first update, and after how many equal updates half
/// of them have changed: a range of one binade, because updates are counted by binades.
std::string first_moves(const UpdateWhatIf& what_if, std::uint64_t of) {
  const auto first = what_if.first_move.find(0);
  const std::uint64_t at_once = first == what_if.first_move.end() ? 0 : first->second;
  const std::string out =
      fmt::format("{} of the 16-bit copies change at the first update", share_text(at_once, of));
  std::uint64_t moved = 0;
  for (const auto& [log2, count] : what_if.first_move) {
    moved += count;
    if (moved < of - moved) continue;
    if (log2 == 0) return out;
    return fmt::format("{}, half after {} to {} equal updates", out,
                       count_text(std::uint64_t{1} << log2),
                       count_text((std::uint64_t{2} << log2) - 1));
  }
  return out + ", most never change";
}

Row kahan_row(const KahanMoves& kahan, std::uint64_t of, const std::string& format) {
  const auto still = [&](std::uint64_t moved) { return of - std::min(of, moved); };
  return row_of(fmt::format("{} with Kahan's compensation", format), still(kahan.moved), of,
                fmt::format("do not change in {} equal updates; {} without the compensation",
                            count_text(kahan.steps), share_text(still(kahan.moved_plain), of)));
}

Row stochastic_row(const StochasticMoves& moves, std::uint64_t of, const std::string& format) {
  const double moved = of == 0 ? 0 : moves.expected_moves() / static_cast<double>(of);
  return row_of(fmt::format("{}, stochastic rounding with {} bits", format, moves.random_bits),
                moves.never, of,
                fmt::format("can never change; a step changes {} of the weights on average",
                            share_text(moved)));
}

void add_what_ifs(const UpdateWhatIf& what_if, std::uint64_t of, const std::string& format,
                  std::vector<Row>& rows) {
  rows.push_back(row_of("FP32 master weights", what_if.master_never, of, first_moves(what_if, of)));
  rows.push_back(outcomes_row("BF16 weights", what_if.bfloat16.half, what_if.bfloat16.updates()));
  rows.push_back(kahan_row(what_if.kahan, of, format));
  for (const StochasticMoves& moves : what_if.stochastic) {
    rows.push_back(stochastic_row(moves, of, format));
  }
  for (const auto& [log2, counts] : what_if.learning_rate) {
    if (log2 == 0) continue;
    rows.push_back(
        outcomes_row(fmt::format("{}, learning rate times {}", format, factor_text(log2)),
                     counts.half, counts.updates()));
  }
}

}  // namespace

std::string rule_of_thumb(const analyzers::underflow::Target& target) {
  return fmt::format("smaller than weight / {} (rule of thumb)",
                     std::uint64_t{1} << target.format.precision);
}

Table what_if_table(const analyzers::underflow::Target& target, const UpdateSum& sum) {
  const UpdateCounts& counts = sum.table.counts;
  const std::uint64_t of = counts.updates();
  const std::string format = people_say(target.name);
  Table table{Evidence::updates, "The same updates in other arithmetic"};
  table.headings = {"weights kept in", "lost", "updates", "of all"};
  table.rows = {
      outcomes_row("pure " + format, counts.half, of),
      outcomes_row("computed in FP32, stored in " + format, counts.fused, of),
      row_of(rule_of_thumb(target), counts.rule_2048, of, "an approximation, to compare with")};
  table.rows.front().marked = true;
  if (sum.what_if) add_what_ifs(*sum.what_if, of, format, table.rows);
  return table;
}

}  // namespace halfscope::reports::answer
