// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analyzers/underflow/step_facts.hpp"
#include "reports/answer/answer.hpp"
#include "reports/answer/explain.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/tensors.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

namespace {

using analyzers::underflow::BinadeCount;
using analyzers::underflow::LargeValue;
using analyzers::underflow::StepFindings;
using analyzers::underflow::Target;
using analyzers::underflow::TensorFindings;

/// Returns the outcomes of the magnitudes from 2^exponent to below 2^(exponent + 1).
std::string outcomes_text(Format f, int exponent, int log2_scale) {
  const double least = std::ldexp(1.0, exponent), end = std::ldexp(1.0, exponent + 1);
  const std::string first = rounded_text(f, least, log2_scale, false);
  const std::string last = rounded_text(f, std::nextafter(end, 0), log2_scale, false);
  return first == last ? first : first + ", " + last;
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

/// Returns sentences on what limits the scale of the tensor at its step, and of the run.
std::vector<std::string> limit_sentences(const analyzers::Study& run, const Target& target,
                                         const TensorFindings& tensor, const StepFindings& step) {
  if (!tensor.loss_scaled) return {"No loss scale acts on this tensor."};
  std::vector<std::string> out = {answer_of(run).headline()};
  if (const auto largest = finite_magnitude(step)) {
    out.push_back(fmt::format("At this step its values allow a scale of {}, without headroom.",
                              power_text(largest->highest_safe_log2(target.format))));
  }
  const auto& limit = run.advice.limited_by;
  if (!limit) return out;
  const bool own = limit->name == tensor.name && limit->step == step.step;
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

Table largest_table(Format format, const std::vector<LargeValue>& largest,
                    const std::vector<int>& scales) {
  Table table = scales_table("Largest values", {"place", "value"}, scales);
  table.note = "Indices count from 0; values are unscaled.";
  table.add_rows(largest, [&](const LargeValue& large) {
    const std::string rank = large.rank == 0 ? "" : fmt::format(" of rank {}", large.rank);
    Row row{{{fmt::format("[{}]{}", fmt::join(large.place, ", "), rank)},
             {fmt::format("{:.6g}", large.value), large.value}}};
    for (const int k : scales) row.cells.push_back({rounded_text(format, large.value, k, true)});
    return row;
  });
  return table;
}

Table histogram_table(Format format, const TensorFindings& tensor, const std::vector<int>& scales) {
  Table table = scales_table("Histogram", {"magnitude", "values", "share"}, scales);
  table.note = "A row has the magnitudes from its power of two to below the next, unscaled.";
  std::vector<BinadeCount> binades = tensor.binades.list();
  std::ranges::reverse(binades);
  table.add_rows(binades, [&](const BinadeCount& binade) {
    const auto most = static_cast<double>(binade.count.high);
    Row row{{{fmt::format("2^{}", binade.exponent), static_cast<double>(binade.exponent)},
             {count_text(binade.count), most},
             {share_text(binade.count, std::max<std::uint64_t>(tensor.counts.total, 1)), most}}};
    for (const int k : scales) row.cells.push_back({outcomes_text(format, binade.exponent, k)});
    return row;
  });
  return table;
}

}  // namespace

Section tensor_section(const analyzers::Study& run, const analyzers::Findings& selected,
                       const std::vector<LargeValue>& largest, int log2_scale) {
  const TensorFindings& tensor = selected.analysis.tensors().front();
  const StepFindings step = *tensor.per_step.begin();
  const Target& target = selected.analysis.target;
  const std::vector<int> scales = log2_scale == 0 ? std::vector{0} : std::vector{0, log2_scale};
  Section section{.title = fmt::format("{} at step {}", code(tensor.name), step.step)};
  section.sentences = limit_sentences(run, target, tensor, step);
  section.sentences.insert(section.sentences.begin(), facts_text(tensor));
  if (tensor.counts.finite_nonzero.high == 0) return section;
  for (const int k : scales) section.sentences.push_back(shares_sentence(target, tensor, k));
  if (largest.empty()) {
    section.sentences.emplace_back(
        "The places of its largest values are unknown: no whole tensor of this step can be read.");
  }
  section.add(largest_table(target.format, largest, scales));
  section.add(histogram_table(target.format, tensor, scales));
  return section;
}

}  // namespace halfscope::reports::answer
