// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_updates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "reports/answer/text.hpp"
#include "reports/answer/update_sums.hpp"

namespace halfscope::cli::terminal {

using analyzers::underflow::UpdateSource;

namespace {

using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;
using reports::answer::count_text;
using reports::answer::plural;
using reports::answer::share_text;
using reports::answer::Tensors;

constexpr std::size_t kShown = 10;

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

/// What share shows at the first update, and after how many half of them do: n is counted by its
/// binade, so that "fewer than 2^(k+1)" is sure.
std::string master_text(const UpdateWhatIf& w) {
  std::uint64_t all = w.master_never;
  for (const auto& [log2, count] : w.first_move) all += count;
  const auto first = w.first_move.find(0);
  const std::uint64_t at_once = first == w.first_move.end() ? 0 : first->second;
  std::string text =
      fmt::format("  FP32 master weights: {} of the updates show in the 16-bit copy at once",
                  share_text(at_once, all));
  std::uint64_t seen = 0;
  for (const auto& [log2, count] : w.first_move) {
    seen += count;
    if (2 * seen < all) continue;
    if (log2 != 0) {
      text += fmt::format(", half of all after fewer than {} equal ones",
                          count_text(std::uint64_t{2} << log2));
    }
    break;
  }
  if (2 * seen < all) text += ", most never";
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
                        reports::answer::power_text(log2_factor),
                        share_text(c.half.lost(), c.updates()));
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

std::string table_text(const Tensors& weights, const std::string& rule) {
  std::string text = fmt::format("{:>14} {:>14} {:>14} {:>14} {:>12}  {}\n", "updates lost",
                                 "round to zero", "vanish in sum", rule, "updates", "weight");
  for (std::size_t i = 0; i < std::min(kShown, weights.size()); ++i) text += row_text(*weights[i]);
  if (weights.size() > kShown) {
    text += fmt::format("and {} more; --json - gives all\n", weights.size() - kShown);
  }
  return text;
}

/// The role whose values an update is made of.
log::Role source_role(const TensorFindings& weight) {
  switch (weight.updates->source) {
    case UpdateSource::update: return log::Role::update;
    case UpdateSource::optimizer_state: return log::Role::optimizer_state;
    case UpdateSource::gradient: return log::Role::weight_grad;
    case UpdateSource::difference: return weight.role;
  }
  return log::Role::update;
}

/// Of what is held in FP16, an update that became zero can no longer be told from none.
std::string half_source_text(const Analysis& analysis, const Tensors& weights, std::uint64_t zero) {
  std::set<std::string> sources;
  for (const TensorFindings* weight : weights) {
    const log::Role role = source_role(*weight);
    for (const TensorFindings& t : analysis.tensors()) {
      const bool narrow = t.computed_in_fp16() && t.log == weight->log && t.role == role;
      if (narrow) sources.insert(std::string(log::name_of(role)));
    }
  }
  if (sources.empty()) return "";
  std::string names;
  for (const std::string& name : sources) names += (names.empty() ? "" : ", ") + name;
  return fmt::format(
      "  At least that: these updates come from values computed in FP16 ({}), and what underflowed "
      "there is zero already.\n{}",
      names,
      zero == 0 ? ""
                : fmt::format("  {} are exactly zero and not counted.\n", plural(zero, "update")));
}

/// Weights held in the other 16-bit format lose by its rules, not by the target's.
std::string other_format_text(const Analysis& analysis, const Tensors& weights) {
  std::string text;
  for (const auto& [dtype, name, option] :
       {std::tuple(Dtype::bf16, "BF16", "bfloat16"), std::tuple(Dtype::f16, "FP16", "binary16")}) {
    if (analysis.target.format == format_of(dtype)) continue;
    const auto held = std::count_if(weights.begin(), weights.end(), [dtype = dtype](const auto* t) {
      return t->source_dtype == dtype;
    });
    if (held == 0) continue;
    text += fmt::format(
        "  {} held in {}: --format {} shows what that loses.\n",
        held == 1 ? "1 of these weights is" : fmt::format("{} of these weights are", held), name,
        option);
  }
  return text;
}

}  // namespace

std::string updates_text(const Analysis& analysis) {
  const Tensors weights = reports::answer::with_updates(reports::answer::all_tensors(analysis));
  if (weights.empty()) return "";
  const reports::answer::UpdateSum sum = reports::answer::sum_updates(weights);
  const UpdateCounts& counts = sum.table.counts;
  const std::string rule = rule_name(analysis);
  std::string text = fmt::format("Of {} nonzero updates of {}, added to weights in {}:\n",
                                 count_text(counts.updates()), plural(weights.size(), "weight"),
                                 analysis.target.name);
  if (counts.updates() != 0) text += lost_text(counts, rule);
  if (sum.undetermined != 0) {
    text += fmt::format(
        "  {} are known only as differences of recorded weights that are zero: lost updates among "
        "them cannot be counted.\n",
        count_text(sum.undetermined));
  }
  text += half_source_text(analysis, weights, counts.zero) + other_format_text(analysis, weights);
  if (counts.updates() == 0) return text;
  if (sum.what_if) text += what_if_text(*sum.what_if, counts);
  return text + "\n" + table_text(weights, rule);
}

std::string missing_updates_text(const Analysis& analysis) {
  const int width = analysis.target.format.width;
  if (width != 16) {
    return fmt::format("weight updates are counted in formats of 16 bits, and {} has {}",
                       analysis.target.name, width);
  }
  if (analysis.has_run_log()) {
    return "unknown: no selected step has full weights with their updates; record the run with "
           "sample_every=N (docs/recording.md)";
  }
  return "no weight updates are known; they need weight/X with update/X, or with weight_grad/X and "
         "--lr (docs/json.md)";
}

}  // namespace halfscope::cli::terminal
