// SPDX-License-Identifier: Apache-2.0
#include "cli/text_updates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "reports/text.hpp"

namespace halfscope::cli {
namespace {

using analyzers::Analysis;
using analyzers::TensorFindings;
using reports::count_text;
using reports::plural;
using reports::share_text;

constexpr std::size_t kShown = 10;

/// All weights together.
struct Sum {
  UpdateCounts counts;
  std::uint64_t undetermined = 0;
  std::optional<UpdateWhatIf> what_if;
};

Sum sum_of(const std::vector<const TensorFindings*>& weights) {
  Sum sum;
  for (const TensorFindings* t : weights) {
    sum.counts += t->updates->table.counts;
    sum.undetermined += t->updates->undetermined;
    if (!t->updates->what_if) continue;
    if (!sum.what_if) sum.what_if.emplace();
    *sum.what_if += *t->updates->what_if;
  }
  return sum;
}

std::string rule_name(const Analysis& analysis) {
  return fmt::format("{}x rule", 1 << analysis.target.format.precision);
}

std::string lost_text(const UpdateCounts& c, const std::string& rule) {
  const std::uint64_t n = c.updates();
  std::string text = fmt::format(
      "  {} are lost: {} round to zero themselves, {} vanish in the sum. The {} would say {}.\n"
      "  In FP32 arithmetic that stores the weight in the format, {} are lost.\n",
      share_text(c.half.lost(), n), share_text(c.half.underflow, n), share_text(c.half.swamped, n),
      rule, share_text(c.rule_2048, n), share_text(c.fused.lost(), n));
  if (c.half.overflow != 0) {
    text += fmt::format("  {} make the weight infinite.\n", share_text(c.half.overflow, n));
  }
  if (c.nonfinite != 0) {
    text +=
        fmt::format("  Not counted: {} with an infinity or NaN.\n", plural(c.nonfinite, "pair"));
  }
  return text;
}

/// "half of ... within 2^k equal updates": the smallest power of two that covers half of them.
std::string master_text(const UpdateWhatIf& w) {
  std::uint64_t all = w.master_never;
  for (const auto& [log2, count] : w.first_move) all += count;
  std::string text = "  FP32 master weights: ";
  std::uint64_t seen = 0;
  for (const auto& [log2, count] : w.first_move) {
    seen += count;
    if (2 * seen < all) continue;
    text += log2 == 0 ? "half of the updates show in the 16-bit copy at once"
                      : fmt::format(
                            "half of the updates show in the 16-bit copy after fewer than "
                            "{} equal ones",
                            count_text(std::uint64_t{2} << log2));
    break;
  }
  if (2 * seen < all) text += "most updates never show in the 16-bit copy";
  return text + fmt::format("; {} are below what FP32 holds.\n", share_text(w.master_never, all));
}

std::string what_if_text(const UpdateWhatIf& w, const UpdateCounts& counts) {
  const std::uint64_t n = counts.updates();
  std::string text = "What if:\n" + master_text(w);
  text += fmt::format("  BF16 weights: {} are lost.\n",
                      share_text(w.bfloat16.half.lost(), w.bfloat16.updates()));
  for (const auto& [log2_factor, c] : w.learning_rate) {
    if (log2_factor != w.learning_rate.begin()->first &&
        log2_factor != w.learning_rate.rbegin()->first) {
      continue;
    }
    text += fmt::format("  Learning rate times {}: {} are lost.\n",
                        reports::power_text(log2_factor), share_text(c.half.lost(), c.updates()));
  }
  if (!w.stochastic.empty()) {
    const StochasticMoves& most = w.stochastic.back();
    text += fmt::format(
        "  Stochastic rounding with {} random bits: {} of the weights move on average at each "
        "step; "
        "{} can never move.\n",
        most.random_bits, share_text(most.expected_moves() / static_cast<double>(n)),
        share_text(most.never, n));
  }
  return text + fmt::format(
                    "  Kahan compensation: after {} equal updates {} have moved the weight, "
                    "{} without it.\n",
                    count_text(w.kahan.steps), share_text(w.kahan.moved, n),
                    share_text(w.kahan.moved_plain, n));
}

std::string row_text(const TensorFindings& t) {
  const UpdateCounts& c = t.updates->table.counts;
  const std::uint64_t n = c.updates();
  return fmt::format("{:>14} {:>14} {:>14} {:>14} {:>12}  {}\n", share_text(c.half.lost(), n),
                     share_text(c.half.underflow, n), share_text(c.half.swamped, n),
                     share_text(c.rule_2048, n), count_text(n), log::printable(t.name));
}

double lost_share(const TensorFindings* t) {
  const UpdateCounts& c = t->updates->table.counts;
  return c.updates() == 0 ? 0.0
                          : static_cast<double>(c.half.lost()) / static_cast<double>(c.updates());
}

std::string table_text(std::vector<const TensorFindings*> weights, const std::string& rule) {
  std::stable_sort(weights.begin(), weights.end(),
                   [](const auto* a, const auto* b) { return lost_share(a) > lost_share(b); });
  std::string text = fmt::format("{:>14} {:>14} {:>14} {:>14} {:>12}  {}\n", "updates lost",
                                 "round to zero", "vanish in sum", rule, "updates", "weight");
  for (std::size_t i = 0; i < std::min(kShown, weights.size()); ++i) text += row_text(*weights[i]);
  if (weights.size() > kShown) {
    text += fmt::format("and {} more; --json - gives all\n", weights.size() - kShown);
  }
  return text;
}

}  // namespace

std::string updates_text(const Analysis& analysis) {
  std::vector<const TensorFindings*> weights;
  for (const TensorFindings& t : analysis.tensors) {
    if (t.updates) weights.push_back(&t);
  }
  if (weights.empty()) return "";
  const Sum sum = sum_of(weights);
  const std::string rule = rule_name(analysis);
  std::string text = fmt::format("Of {} nonzero updates of {}, added to weights in {}:\n",
                                 count_text(sum.counts.updates()), plural(weights.size(), "weight"),
                                 analysis.target.name);
  if (sum.counts.updates() != 0) text += lost_text(sum.counts, rule);
  if (sum.undetermined != 0) {
    text += fmt::format(
        "  {} are known only as differences of recorded weights that are zero: whether an update "
        "was lost there cannot be told.\n",
        count_text(sum.undetermined));
  }
  if (sum.counts.updates() == 0) return text;
  if (sum.what_if) text += what_if_text(*sum.what_if, sum.counts);
  return text + "\n" + table_text(weights, rule);
}

}  // namespace halfscope::cli
