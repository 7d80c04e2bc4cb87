// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "reports/answer/explain.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/tensors.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

namespace {

using analyzers::underflow::BinadeCount;
using analyzers::underflow::Target;
using analyzers::underflow::TensorFindings;

/// Returns the classes of the magnitudes from 2^exponent to below 2^(exponent + 1).
std::string classes_text(const Target& target, int exponent, int log2_scale) {
  const Boundaries limits = target.boundaries(std::ldexp(1.0, log2_scale), 1);
  const Magnitude first = {exponent, 0}, end = {exponent + 1, 0};
  std::vector<std::string_view> words;
  if (first < limits.nonzero) words.emplace_back("zero");
  if (std::max(first, limits.nonzero) < std::min(end, limits.normal)) {
    words.emplace_back("subnormal");
  }
  if (std::max(first, limits.normal) < std::min(end, limits.overflow)) words.emplace_back("normal");
  if (limits.overflow < end) words.emplace_back("overflow");
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string shares_sentence(const Target& target, const TensorFindings& tensor, int log2_scale) {
  const Classes classes = tensor.classes_at(target, log2_scale);
  const auto share = [&](Interval Classes::*part) {
    return class_share_text(classes, part, tensor.counts.finite_nonzero);
  };
  return fmt::format("At scale {} in {}: {} flushed to zero, {} subnormal, {} overflow.",
                     power_text(log2_scale), people_say(target.name),
                     share(&Classes::flushed_to_zero), share(&Classes::subnormal),
                     share(&Classes::overflow));
}

/// Returns sentences on what limits the scale of the tensor, and of the run.
std::vector<std::string> limit_sentences(const analyzers::Study& run, const Target& target,
                                         const TensorFindings& tensor, std::int64_t step) {
  if (!tensor.loss_scaled) return {"No loss scale acts on this tensor."};
  std::vector<std::string> out = {scale_sentence(run, false)};
  const auto overflows = [&](int k) { return tensor.classes_at(target, k).overflow.high != 0; };
  int allowed = -200, not_allowed = 200;  // more than the range of binary32
  if (!overflows(allowed) && overflows(not_allowed)) {
    while (not_allowed - allowed > 1) {
      const int middle = (allowed + not_allowed) / 2;
      (overflows(middle) ? not_allowed : allowed) = middle;
    }
    out.push_back(
        fmt::format("At this step its values allow a scale of {} at most.", power_text(allowed)));
  }
  const auto& limit = run.advice.limited_by;
  if (!limit) return out;
  const bool own = limit->name == tensor.name && limit->step == step;
  out.push_back(fmt::format("The scale of the run is limited by {}{} at step {}: {}.",
                            limit->from_scalars ? "a tensor of role " : "",
                            own ? "this tensor" : code(limit->name), limit->step,
                            magnitude_text(limit->max_abs)));
  return out;
}

/// Returns an empty table with a column for each scale after `headings`.
Table scales_table(std::string title, std::vector<std::string> headings,
                   const std::vector<int>& scales) {
  for (const int k : scales) headings.push_back("at scale " + power_text(k));
  return {.title = std::move(title), .headings = std::move(headings), .whole = true};
}

Table largest_table(const Target& target, const std::vector<analyzers::LargeValue>& largest,
                    const std::vector<int>& scales) {
  Table table = scales_table("Largest values", {"place", "value"}, scales);
  table.note = "Indices count from 0; values are unscaled.";
  table.add_rows(largest, [&](const analyzers::LargeValue& large) {
    const std::string rank = large.rank == 0 ? "" : fmt::format(" of rank {}", large.rank);
    Row row{{{fmt::format("[{}]{}", fmt::join(large.place, ", "), rank)},
             {fmt::format("{:.6g}", large.value), large.value}}};
    for (const int k : scales) {
      row.cells.push_back({rounded_text({target.name, target.format}, large.value, k)});
    }
    return row;
  });
  return table;
}

Table histogram_table(const Target& target, const TensorFindings& tensor,
                      const std::vector<int>& scales) {
  Table table = scales_table("Histogram", {"magnitude", "values", "share"}, scales);
  table.note = "A row has the magnitudes from its power of two to below the next, unscaled.";
  std::vector<BinadeCount> binades = tensor.binades.list();
  std::ranges::reverse(binades);
  table.add_rows(binades, [&](const BinadeCount& binade) {
    const auto most = static_cast<double>(binade.count.high);
    Row row{{{fmt::format("2^{}", binade.exponent), static_cast<double>(binade.exponent)},
             {count_text(binade.count), most},
             {share_text(binade.count, std::max<std::uint64_t>(tensor.counts.total, 1)), most}}};
    for (const int k : scales) row.cells.push_back({classes_text(target, binade.exponent, k)});
    return row;
  });
  return table;
}

}  // namespace

Section tensor_section(const analyzers::Study& run, const analyzers::Findings& one,
                       const std::vector<analyzers::LargeValue>& largest, std::int64_t step,
                       int log2_scale) {
  const TensorFindings& tensor = one.analysis.tensors().front();
  const Target& target = one.analysis.target;
  const std::vector<int> scales = log2_scale == 0 ? std::vector{0} : std::vector{0, log2_scale};
  Section section{.title = fmt::format("{} at step {}", code(tensor.name), step)};
  section.sentences = limit_sentences(run, target, tensor, step);
  section.sentences.insert(section.sentences.begin(), facts_text(tensor));
  if (tensor.counts.finite_nonzero.high == 0) return section;
  for (const int k : scales) section.sentences.push_back(shares_sentence(target, tensor, k));
  if (largest.empty()) {
    section.sentences.emplace_back(
        "The places of its largest values are unknown: the log has no whole tensor of this step.");
  }
  for (Table& table : std::vector{largest_table(target, largest, scales),
                                  histogram_table(target, tensor, scales)}) {
    if (!table.empty()) section.tables.push_back(std::move(table));
  }
  return section;
}

}  // namespace halfscope::reports::answer
