// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/answer/explain.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/tensors.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

namespace {

using analyzers::LargeValue;
using analyzers::OneTensor;
using analyzers::underflow::BinadeCount;

/// Returns the classes of the magnitudes from 2^exponent to below 2^(exponent + 1).
std::string classes_text(const OneTensor& one, int exponent, int log2_scale) {
  const Boundaries limits = one.target.boundaries(std::ldexp(1.0, log2_scale), 1);
  const Magnitude first = {exponent, 0}, end = {exponent + 1, 0};
  std::vector<std::string> words;
  if (first < limits.nonzero) words.emplace_back("zero");
  if (std::max(first, limits.nonzero) < std::min(end, limits.normal)) {
    words.emplace_back("subnormal");
  }
  if (std::max(first, limits.normal) < std::min(end, limits.overflow)) words.emplace_back("normal");
  if (limits.overflow < end) words.emplace_back("overflow");
  return fmt::format("{}", fmt::join(words, ", "));
}

Table classes_table(const OneTensor& one, std::span<const int> scales) {
  Table table{.title = fmt::format("In {}", people_say(one.target.name)),
              .note = "Shares of the finite nonzero values.",
              .headings = {"scale", "flushed to zero", "subnormal", "normal", "overflow"},
              .whole = true};
  const Interval of = one.tensor.counts.finite_nonzero;
  table.add_rows(scales, [&](int log2_scale) {
    const Classes classes = one.tensor.classes_at(one.target, log2_scale);
    const auto cell = [&](Interval Classes::*part) {
      return Cell{class_share_text(classes, part, of), class_share(classes, part, of).high,
                  count_text(classes.*part), (classes.*part).high == 0};
    };
    return Row{{{power_text(log2_scale)},
                cell(&Classes::flushed_to_zero),
                cell(&Classes::subnormal),
                cell(&Classes::normal),
                cell(&Classes::overflow)}};
  });
  return table;
}

std::vector<std::string> headings_with(std::vector<std::string> headings,
                                       std::span<const int> scales) {
  for (const int log2_scale : scales) headings.push_back("at scale " + power_text(log2_scale));
  return headings;
}

Table histogram_table(const OneTensor& one, std::span<const int> scales) {
  Table table{.title = "Histogram",
              .note = "A row has the magnitudes from its power of two to below the next, unscaled.",
              .headings = headings_with({"magnitude", "values", "share"}, scales),
              .whole = true};
  std::vector<BinadeCount> binades = one.tensor.binades.list();
  std::ranges::reverse(binades);
  table.add_rows(binades, [&](const BinadeCount& binade) {
    Row row{{{fmt::format("2^{}", binade.exponent), static_cast<double>(binade.exponent)},
             {count_text(binade.count), static_cast<double>(binade.count.high)},
             {share_text(binade.count, std::max<std::uint64_t>(one.tensor.counts.total, 1)),
              static_cast<double>(binade.count.high)}}};
    for (const int log2_scale : scales) {
      row.cells.push_back({classes_text(one, binade.exponent, log2_scale)});
    }
    return row;
  });
  return table;
}

Table largest_table(const OneTensor& one, std::span<const int> scales) {
  Table table{.title = "Largest values",
              .note = "Indices count from 0.",
              .headings = headings_with({"place", "value"}, scales),
              .whole = true};
  const bool ranks = std::ranges::any_of(one.largest, [](const auto& each) { return each.rank; });
  table.add_rows(one.largest, [&](const LargeValue& large) {
    const std::string place = fmt::format("[{}]", fmt::join(large.place, ", "));
    Row row{{{ranks ? fmt::format("{} of rank {}", place, large.rank) : place},
             {fmt::format("{:.6g}", large.value), large.value}}};
    for (const int log2_scale : scales) {
      row.cells.push_back(
          {rounded_text({one.target.name, one.target.format}, large.value, log2_scale)});
    }
    return row;
  });
  return table;
}

/// Returns sentences on what limits the scale of the run, and of this tensor.
std::vector<std::string> limit_sentences(const analyzers::Study& run, const OneTensor& one,
                                         std::int64_t step) {
  std::vector<std::string> out;
  if (one.safe_log2 && one.tensor.loss_scaled) {
    out.push_back(fmt::format("Its values at this step overflow above the scale {}.",
                              power_text(*one.safe_log2)));
  } else if (!one.tensor.loss_scaled) {
    out.emplace_back("No loss scale acts on this tensor.");
  }
  if (const auto& limit = run.advice.limited_by) {
    const bool own = limit->name == one.tensor.name && limit->step == step;
    out.push_back(own ? "This tensor at this step limits the loss scale of the run."
                      : fmt::format("The loss scale of the run is limited by {} at step {}, whose "
                                    "largest magnitude is {}.",
                                    code(limit->name), limit->step,
                                    magnitude_text(limit->max_abs)));
  }
  return out;
}

}  // namespace

std::vector<Section> tensor_sections(const analyzers::Study& run, const OneTensor& one,
                                     std::int64_t step, std::optional<int> log2_scale) {
  std::vector<int> scales = {0};
  if (log2_scale && *log2_scale != 0) scales.push_back(*log2_scale);
  Section section{.title = ""};
  section.sentences.push_back(
      fmt::format("{} at step {}: {}", code(one.tensor.name), step, facts_text(one.tensor)));
  section.sentences.push_back(scale_sentence(run, false));
  for (std::string& sentence : limit_sentences(run, one, step)) {
    section.sentences.push_back(std::move(sentence));
  }
  if (one.tensor.counts.finite_nonzero.high != 0) {
    section.tables.push_back(classes_table(one, scales));
  }
  if (!one.largest.empty()) {
    section.tables.push_back(largest_table(one, scales));
  } else {
    section.sentences.emplace_back(
        "The log does not have the whole tensor of this step, so the places of its largest values "
        "are unknown.");
  }
  if (!one.tensor.binades.empty()) section.tables.push_back(histogram_table(one, scales));
  return {section};
}

}  // namespace halfscope::reports::answer
