// SPDX-License-Identifier: Apache-2.0
// Tables of the evidence for a recommendation, and of what else it recommends.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reports/answer/answer_parts.hpp"
#include "reports/answer/cure_words.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/no_scale.hpp"
#include "reports/answer/skip_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::recommend::KeepInFp32;
using analyzers::recommend::LayerScale;
using analyzers::recommend::Recommendation;
using analyzers::recommend::ScaleEvidence;
using analyzers::underflow::Share;

namespace {

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

std::string own_scales(const LayerScale& layer) {
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
             {own_scales(layer), static_cast<double>(layer.lowest_log2.value_or(-1000))},
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

std::vector<Table> tables(const analyzers::Study& study) {
  const Recommendation& advice = study.advice;
  std::vector<Table> all = {scales(advice), layers(advice), keep(advice), dimensions(advice)};
  std::erase_if(all, &Table::empty);
  for (Table& table : all) table.all_by = kRecommendJson;
  return all;
}

}  // namespace halfscope::reports::answer
