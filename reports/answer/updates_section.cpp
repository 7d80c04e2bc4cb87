// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/updates_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "reports/answer/formats.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/what_if_table.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;
using analyzers::underflow::UpdateSource;

namespace {

/// Returns the role of the values from which a weight's updates are computed.
log::Role source_role(const TensorFindings& weight) {
  switch (weight.updates->source) {
    case UpdateSource::update: return log::Role::update;
    case UpdateSource::optimizer_state: return log::Role::optimizer_state;
    case UpdateSource::gradient: return log::Role::weight_grad;
    case UpdateSource::difference: return weight.role;
  }
  return log::Role::update;
}

std::string joined(const std::set<std::string>& names) {
  return listed({names.begin(), names.end()}, names.size());
}

std::string counts_text(const Analysis& analysis, const Tensors& weights, const UpdateSum& sum) {
  const UpdateCounts& counts = sum.table.counts;
  std::set<std::string> sources;
  for (const TensorFindings* weight : weights) {
    std::string name(analyzers::underflow::name_of(weight->updates->source));
    std::ranges::replace(name, '_', ' ');
    sources.insert(std::move(name));
  }
  return fmt::format(
      "{} with {}, added to weights in {}: {} are zero, {} hold NaN or infinity, {} are counted as "
      "lost or not. Source of the updates: {}.",
      plural(weights.size(), "weight"), plural(counts.pairs, "update"),
      people_say(analysis.target.name), count_text(counts.zero), count_text(counts.nonfinite),
      count_text(counts.updates()), joined(sources));
}

std::string undetermined_text(const UpdateSum& sum) {
  if (sum.undetermined == 0) return "";
  return fmt::format(
      "{} more are differences of recorded weights that are zero: lost updates among them cannot "
      "be counted.",
      count_text(sum.undetermined));
}

/// Returns a caveat on updates computed in FP16: if they underflowed there, they are zero.
std::string half_source_text(const Analysis& analysis, const Tensors& weights) {
  std::set<std::pair<std::string_view, log::Role>> narrow;
  for (const TensorFindings& t : analysis.tensors()) {
    if (t.computed_in_fp16()) narrow.emplace(*t.log, t.role);
  }
  std::set<std::string> sources;
  for (const TensorFindings* weight : weights) {
    const log::Role role = source_role(*weight);
    if (narrow.contains({*weight->log, role})) sources.emplace(log::name_of(role));
  }
  if (sources.empty()) return "";
  return fmt::format(
      "These are lower bounds: the updates come from values computed in FP16 ({}), and what "
      "underflowed there is zero already.",
      joined(sources));
}

/// Returns what the run itself loses, if it keeps only some weights in the target format.
std::string kept_text(const Analysis& analysis, const Tensors& weights) {
  const SumsByKept sums = sums_by_kept(weights, analysis.target.format);
  if (sums.narrow.weights == 0 || sums.others.weights == 0) return "";
  const UpdateCounts& counts = sums.narrow.table.counts;
  return fmt::format(
      "The run itself keeps {} of them in {} and loses {} of their {}; the others show what {} "
      "would lose.",
      count_text(sums.narrow.weights), people_say(analysis.target.name),
      share_text(counts.half.lost(), counts.updates()), plural(counts.updates(), "update"),
      people_say(analysis.target.name));
}

/// Returns sentences on weights in the other 16-bit format: these lose by that format's rules.
std::vector<std::string> other_format_texts(const Analysis& analysis, const Tensors& weights) {
  constexpr std::array kOthers = {std::tuple(Dtype::bf16, "BF16", "bfloat16"),
                                  std::tuple(Dtype::f16, "FP16", "binary16")};
  std::vector<std::string> texts;
  for (const auto& other : kOthers) {
    const Dtype dtype = std::get<0>(other);
    if (analysis.target.format == format_of(dtype)) continue;
    const auto held = static_cast<std::size_t>(std::ranges::count_if(
        weights, [dtype](const auto* weight) { return weight->source_dtype == dtype; }));
    if (held == 0) continue;
    texts.push_back(
        fmt::format("{} held in {}: {} shows what that loses.",
                    held == 1 ? "1 of these weights is"
                              : fmt::format("{} of these weights are", count_text(held)),
                    std::get<1>(other), code(fmt::format("--format {}", std::get<2>(other)))));
  }
  return texts;
}

Cell count_cell(std::uint64_t count, std::uint64_t of) {
  return {share_text(count, of), of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of),
          fmt::format("{} of {}", count_text(count), count_text(of)), count == 0};
}

Table weights_table(const Analysis& analysis, const Tensors& weights) {
  Table table{Evidence::updates, "Weight by weight"};
  table.headings = {"weight",
                    "updates lost",
                    "too small for the format",
                    "rounded away",
                    rule_of_thumb(analysis.target),
                    "updates"};
  table.left_out = weights.size() - std::min(weights.size(), kMostRows);
  for (const TensorFindings* weight : std::span(weights).first(weights.size() - table.left_out)) {
    const UpdateCounts& c = weight->updates->table.counts;
    const std::uint64_t n = c.updates();
    table.rows.push_back({{{code(weight->name)},
                           count_cell(c.half.lost(), n),
                           count_cell(c.half.underflow, n),
                           count_cell(c.half.swamped, n),
                           count_cell(c.rule_2048, n),
                           {count_text(n), static_cast<double>(n)}}});
  }
  return table;
}

}  // namespace

Section updates_section(const Analysis& analysis, const Tensors& tensors) {
  const Tensors weights = with_updates(tensors);
  if (weights.empty()) return {};
  const UpdateSum sum = sum_updates(weights);
  Section section{"Weight updates that are lost"};
  section.sentences = {counts_text(analysis, weights, sum), kept_text(analysis, weights),
                       undetermined_text(sum), half_source_text(analysis, weights)};
  std::ranges::move(other_format_texts(analysis, weights), std::back_inserter(section.sentences));
  std::erase(section.sentences, "");
  if (sum.table.counts.updates() == 0) return section;
  section.tables = {what_if_table(analysis.target, sum), weights_table(analysis, weights)};
  return section;
}

std::string updates_digest(const Analysis& analysis, const UpdateSum& sum) {
  const UpdateCounts& counts = sum.table.counts;
  return fmt::format("{} of {} lost in pure {}", share_text(counts.half.lost(), counts.updates()),
                     plural(counts.updates(), "update"), people_say(analysis.target.name));
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

}  // namespace halfscope::reports::answer
