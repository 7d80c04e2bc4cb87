// SPDX-License-Identifier: Apache-2.0
// Answer::details and Answer::tables: the evidence for a recommended scale.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "halfscope/log/error.hpp"
#include "reports/answer/answer.hpp"
#include "reports/answer/ranks.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::recommend::KeepInFp32;
using analyzers::recommend::LayerScale;
using analyzers::recommend::Limit;
using analyzers::recommend::RankSum;
using analyzers::recommend::Recommendation;
using analyzers::recommend::ScaleEvidence;
using analyzers::recommend::SkipBound;
using analyzers::underflow::Share;

namespace {

/// For example "at most 3.4 %, 95 %, one-sided".
std::string interval_text(double low, double high) {
  return low > 0 ? share_range_text(low, high) + ", 95 %"
                 : fmt::format("at most {}, 95 %, one-sided", share_text(high));
}

Interval counted(const SkipBound& bound) {
  return {bound.exceedances, bound.exceedances + bound.perhaps};
}

/// Returns a sentence on steps outside the bound: ". 57 more are unknown". Empty if there are none.
std::string others_text(const SkipBound& bound) {
  if (bound.unread == 0) return "";
  const std::string more = fmt::format("{} more", count_text(bound.unread));
  return bound.unread_exceedances == 0
             ? fmt::format(". {} {} unknown", more, bound.unread == 1 ? "is" : "are")
             : fmt::format(". Of {} at least {} do", more, count_text(bound.unread_exceedances));
}

/// For example "at most 3.4 %" or "3.5 % (0.7 % to 9.9 %)".
std::string chance_text(const SkipBound& bound) {
  if (bound.low <= 0) return "at most " + share_text(bound.high);
  return fmt::format("{} ({})", share_text(bound.probability),
                     share_range_text(bound.low, bound.high));
}

/// For example "0 of 86 steps overflow (at most 3.4 %, 95 %, one-sided)".
std::string overflowing_text(const SkipBound& bound) {
  return fmt::format("{} of {}{} overflow ({}){}", count_text(counted(bound)),
                     plural(bound.steps, "step"),
                     bound.unread == 0 ? "" : " whose gradients were all read",
                     interval_text(bound.low, bound.high), others_text(bound));
}

/// For example "torch starts at 65536 (2^16) with growth_interval 2000".
std::string settings_text(const analyzers::recommend::DynamicAdvice& advice) {
  constexpr std::uint64_t kNever = std::numeric_limits<std::int32_t>::max();
  const policy::Info& policy = policy::info_of(advice.policy);
  return fmt::format("{} starts at {} with {} {}{}", policy.name, scale_text(advice.init),
                     policy.interval, advice.growth_interval,
                     advice.growth_interval >= kNever ? " (it never grows)" : "");
}

/// For example "Replayed over the recorded steps, it skips 3 of 86 (0.7 % to 9.9 %, 95 %)".
std::string replayed_text(const analyzers::recommend::DynamicAdvice& advice) {
  if (!advice.replayed) return "The log cannot be replayed, so how many steps it skips is unknown";
  const SkipBound& found = *advice.replayed;
  return fmt::format(
      "Replayed over the recorded steps, it skips {} of {} ({}){}", count_text(counted(found)),
      found.unread == 0 ? count_text(found.steps)
                        : plural(found.steps, "step") + " whose gradients were all read",
      interval_text(found.low, found.high), others_text(found));
}

using Sentences = std::vector<std::string>;

/// Adds the share of gradients that become zero, by number and by L1 norm.
void zeros(const Study& study, Sentences& to) {
  const Recommendation& r = study.advice;
  if (hidden_underflow(r) == Hidden::no_counts) return;
  const auto both = [&](const Share& share, const std::optional<MassShare>& mass) {
    const std::string count = flushed_text(study, share);
    return mass ? fmt::format("{} ({} of their L1 norm)", count,
                              share_range_text(mass->l1.low, mass->l1.high))
                : count;
  };
  std::string line = fmt::format("Gradients that become zero: {} without a scale, {} at {}.",
                                 both(r.flushed_at_1, r.lost_at_1),
                                 both(r.flushed_at_recommended, r.lost_at_recommended),
                                 power_text(*r.static_log2));
  if (r.lowest_log2 && *r.lowest_log2 <= *r.highest_log2) {
    line += fmt::format(" Scales from {} to {} keep that at {} or less in every tensor.",
                        power_text(*r.lowest_log2), power_text(*r.highest_log2),
                        share_text(r.asked.target_underflow));
  }
  to.push_back(line);
}

std::string limit_text(const Recommendation& r) {
  const Limit& limit = *r.limited_by;
  if (limit.skipped_at) {
    return fmt::format(
        "Limited by gradients of {} or more: {}. That leaves at most {:.1f} binades below "
        "overflow.",
        magnitude_text(limit.max_abs), skipped_limit_text(limit), r.headroom_bits);
  }
  if (limit.nan_at) {
    return fmt::format(
        "Limited by {} at step {}: {}, so by a magnitude of at least {}. That leaves at most "
        "{:.1f} binades below overflow.",
        code(limit.name), limit.step, nan_limit_text(limit), magnitude_text(limit.max_abs),
        r.headroom_bits);
  }
  // A scalar of a step does not name the tensor.
  const std::string name = limit.from_scalars
                               ? fmt::format("the {}", values_name(*log::find_role(limit.name)))
                               : code(limit.name);
  return fmt::format(
      "Limited by {} at step {}: {} largest magnitude is {}{}, which leaves {}{:.1f} binades "
      "below overflow.",
      name, limit.step, limit.from_scalars ? "their" : "its",
      limit.censored  ? "at least "
      : limit.bounded ? "at most "
                      : "",
      magnitude_text(limit.max_abs), limit.censored ? "at most " : "", r.headroom_bits);
}

void skips(const Recommendation& r, Sentences& to) {
  if (!r.skip) return;
  std::string line =
      fmt::format("At {}, {}.", power_text(*r.static_log2), overflowing_text(*r.skip));
  if (r.steps_left_out != 0) {
    line += fmt::format(" Not counted: {} whose largest gradient is unknown (infinity or NaN).",
                        plural(r.steps_left_out, "step"));
  }
  to.push_back(line);
}

void dynamic(const Recommendation& r, Sentences& to) {
  if (r.dynamic.empty()) return;
  const analyzers::recommend::DynamicAdvice& d = r.dynamic.front();
  to.push_back(fmt::format("Dynamic scaling: {}. {}. {}", settings_text(d), replayed_text(d),
                           why_settings_text(d)));
}

void ranks(const Recommendation& r, Sentences& to) {
  if (!r.ranks) return;
  const RankSum& sum = *r.ranks;
  std::string line = fmt::format(
      "Sum over {} ranks in FP16: dividing before it flushes {} instead of {}; ", sum.ranks,
      share_text(sum.flushed_before, sum.of.high), share_text(sum.flushed_alone, sum.of.high));
  if (sum.headroom_after > 0) {
    line +=
        fmt::format("dividing after it leaves {:.1f} binades below overflow", sum.headroom_after);
  } else {
    line += "dividing after it may overflow";
    if (sum.highest_after_log2) {
      line += fmt::format(", safe up to {}", power_text(*sum.highest_after_log2));
    }
  }
  to.push_back(line + ".");
}

/// Adds what autocast keeps in FP32 without any action.
void autocast(const Recommendation& advice, Sentences& to) {
  using analyzers::recommend::KeepInFp32;
  std::string names;
  for (const KeepInFp32& keep : advice.keep_in_fp32) {
    if (!keep.by_autocast()) continue;
    names += (names.empty() ? "" : ", ");
    names += (keep.kind == KeepInFp32::Kind::logits ? "softmax of " : "") + code(keep.name);
  }
  if (!names.empty()) {
    to.push_back(fmt::format("Autocast keeps in FP32, so do not cast by hand: {}.", names));
  }
}

void scale(const Study& study, Sentences& to) {
  const Recommendation& r = study.advice;
  zeros(study, to);
  if (r.limited_by) to.push_back(limit_text(r));
  if (const std::string half = half_parameters_text(r); !half.empty()) to.push_back(half);
  if (const std::string missed = missed_text(r); !missed.empty()) {
    to.push_back(fmt::format("Even so, {}.", log::printable(missed)));
  }
  if (*r.static_log2 == analyzers::underflow::kLastLog2Scale && !r.above_target.empty()) {
    to.push_back(fmt::format(
        "2^{} is the largest scale considered: these gradients are too small for FP16 at any "
        "scale in use.",
        analyzers::underflow::kLastLog2Scale));
  }
}

void memory(const Recommendation& advice, Sentences& to) {
  if (!advice.footprint || advice.footprint->bytes_fp32 == 0) return;
  const analyzers::recommend::Footprint& f = *advice.footprint;
  to.push_back(fmt::format(
      "Weights and activations of a {} take {} in FP32, {} in FP16, {} in FP16 with FP32 master "
      "weights.",
      f.microbatches > 1 ? "microbatch" : "step", bytes_text(f.bytes_fp32),
      bytes_text(f.bytes_fp16), bytes_text(f.bytes_mixed)));
}

Cell share_cell(const Interval& count, const Interval& of) {
  const Share share{count, of};
  return {of.exact() ? share_text(count, of.low) : share_range_text(share.low(), share.high()),
          of.high == 0 ? 0 : static_cast<double>(count.high) / static_cast<double>(of.high),
          count_text(count) + " of " + count_text(of), count.high == 0};
}

Cell bounds_cell(const Bounds& bounds) {
  return {share_range_text(bounds.low, bounds.high), bounds.high, "", bounds.high == 0};
}

Cell overflow_cell(const ScaleEvidence& scale) {
  if (scale.skip.steps == 0) return {"unknown", -1, "", true};
  return {count_text(scale.overflow_steps), static_cast<double>(scale.overflow_steps.high), "",
          scale.overflow_steps.high == 0};
}

Cell chance_cell(const ScaleEvidence& scale) {
  if (scale.skip.steps == 0) return {"unknown", -1, "", true};
  return {chance_text(scale.skip), scale.skip.high, overflowing_text(scale.skip)};
}

Table scales(const Recommendation& advice) {
  Table table{Evidence::scales,
              advice.all_steps_censored()
                  ? "Scales around the upper bound"
                  : fmt::format("Scales around the {} one", advised_word(advice))};
  table.whole = true;
  table.headings = {"loss scale", "become zero",         "of L1 norm",
                    "of L2 sum",  "steps that overflow", "chance of a skipped step"};
  std::uint64_t steps = 0, unread = 0;
  for (const ScaleEvidence& scale : advice.scales) {
    const bool chosen = scale.log2_scale == advice.static_log2;
    steps = std::max(steps, scale.skip.steps + scale.skip.unread);
    unread = std::max(unread, scale.skip.unread);
    table.rows.push_back(
        {{{power_text(scale.log2_scale) + (chosen ? fmt::format(" {}", advised_word(advice)) : ""),
           static_cast<double>(scale.log2_scale)},
          share_cell(scale.flushed, scale.of),
          bounds_cell(scale.lost.l1),
          bounds_cell(scale.lost.l2),
          overflow_cell(scale),
          chance_cell(scale)},
         chosen});
  }
  table.note = fmt::format(
      "Chance of a skipped step: counted over {}, with a 95 % interval that assumes nothing about "
      "the magnitudes.{}",
      plural(steps - unread, "recorded step"),
      unread == 0 ? ""
                  : fmt::format(" Not counted: {} whose gradients were not all read.",
                                plural(unread, "step")));
  return table;
}

std::string served_text(const LayerScale& layer) {
  const auto& lowest = layer.lowest_log2;
  const auto& highest = layer.highest_log2;
  if (lowest && highest) {
    return fmt::format(
        fmt::runtime(layer.served() ? "2^{} to 2^{}" : "none: needs 2^{}, allows 2^{}"), *lowest,
        *highest);
  }
  if (highest) return fmt::format("none: allows 2^{}", *highest);
  return lowest ? fmt::format("none: needs 2^{}", *lowest) : "none";
}

/// Returns which layers have scales of their own that reach the target: all, some or none.
std::string layers_note(const Recommendation& advice) {
  const auto served = std::ranges::count_if(advice.per_layer, &LayerScale::served);
  if (served == 0) return "No scale reaches the target in these layers, not even one of their own.";
  return served == static_cast<std::ptrdiff_t>(advice.per_layer.size())
             ? "No single scale serves every layer. Scales of their own would."
             : "No single scale serves every layer. Scales of their own would serve some.";
}

/// Returns the layers, sorted by the share that the single scale flushes, largest first.
Table layers(const Recommendation& advice) {
  Table table{Evidence::advice, "A scale for each layer", layers_note(advice)};
  const bool als = std::ranges::any_of(
      advice.per_layer, [](const LayerScale& layer) { return layer.als.has_value(); });
  table.headings = {"layer", "scales that serve it", "zero at the one scale",
                    "zero at its highest"};
  if (als) table.headings.push_back("scale by adaptive loss scaling");
  for (const LayerScale& layer : advice.per_layer) {
    Row row{{{code(layer.layer)},
             {served_text(layer), static_cast<double>(layer.lowest_log2.value_or(-1000))},
             share_cell(layer.flushed_at_static, layer.of),
             share_cell(layer.flushed_at_own, layer.of)}};
    if (als) {
      row.cells.push_back(layer.als ? Cell{fmt::format("{:.4g}", *layer.als), *layer.als}
                                    : Cell{"", -1, "", true});
    }
    table.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(
      table.rows, [](const Row& a, const Row& b) { return *a.cells[2].key > *b.cells[2].key; });
  return table;
}

Cell gain_cell(const KeepInFp32& keep) {
  if (keep.binades_gained <= 0) return {"", 0, "", true};
  return {fmt::format("+{}", plural(static_cast<std::uint64_t>(keep.binades_gained), "binade")),
          static_cast<double>(keep.binades_gained),
          keep.highest_log2_without
              ? "The rest would allow " + power_text(*keep.highest_log2_without)
              : ""};
}

Table keep(const Recommendation& advice) {
  Table table{Evidence::advice, "Keep in FP32"};
  table.headings = {"tensor or operation", "kind", "the scale can rise by", "why"};
  for (const KeepInFp32& keep : advice.keep_in_fp32) {
    table.rows.push_back({{{code(keep.name)},
                           {std::string(name_of(keep.kind))},
                           gain_cell(keep),
                           {why_text(keep, advice)}}});
  }
  return table;
}

Table dimensions(const Recommendation& advice) {
  Table table{Evidence::advice, "Large dimensions that are not a multiple of 8",
              "Tensor Cores may use slower kernels for them."};
  table.headings = {"tensor", "shape", "what is odd"};
  if (!advice.footprint) return table;
  for (const auto& odd : advice.footprint->not_multiples_of_8) {
    table.rows.push_back({{{code(odd.name)}, {extents_text(odd.shape)}, {why_text(odd)}}});
  }
  return table;
}

}  // namespace

std::vector<std::string> details(const Study& study) {
  Sentences out;
  const Recommendation& advice = study.advice;
  if (advice.static_log2 && !advice.needs_no_scale()) scale(study, out);
  skips(advice, out);
  dynamic(advice, out);
  ranks(advice, out);
  autocast(advice, out);
  memory(advice, out);
  return out;
}

std::vector<Table> tables(const analyzers::Study& study) {
  const Recommendation& advice = study.advice;
  std::vector<Table> all = {scales(advice), layers(advice), keep(advice), dimensions(advice)};
  std::erase_if(all, &Table::empty);
  for (Table& table : all) table.all_by = kRecommendJson;
  return all;
}

}  // namespace halfscope::reports::answer
