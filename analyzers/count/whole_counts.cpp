// SPDX-License-Identifier: Apache-2.0
#include "analyzers/count/whole_counts.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "analyzers/overflow/attention_scores.hpp"
#include "analyzers/underflow/update_findings.hpp"
#include "analyzers/updates/pairs.hpp"
#include "halfscope/number/format_names.hpp"

namespace halfscope::analyzers::count {

using frames::WholeStep;

namespace {

/// The 16-bit formats in which a run may keep its weights.
constexpr std::array<std::pair<std::string_view, Format>, 2> kWeightFormats = {
    {{"binary16", kBinary16}, {"bfloat16", kBfloat16}}};

frames::CountedSums sums_of(const frames::WholeTensor& tensor) {
  frames::CountedSums counted{tensor.name, tensor.step, tensor.scale, tensor.view.count, {}};
  counted.sums.add(tensor.view);
  return counted;
}

frames::CountedUpdates updates_of(const updates::Pair& pair, const std::string& weight,
                                  underflow::UpdateSource source, std::int64_t step) {
  frames::CountedUpdates counted{weight, step, std::string(underflow::name_of(source)), {}};
  for (const auto& [name, format] : kWeightFormats) {
    UpdateOptions options;
    options.format = format;
    counted.by_format.emplace_back(name, pair.count(options, [](double) {}));
  }
  return counted;
}

}  // namespace

void count_whole(const frames::Part& part, const frames::Selection& selection,
                 const frames::WholeCountsVisitor& visit, frames::Notes& notes,
                 const frames::Progress& progress) {
  frames::TensorsOfSteps tensors(
      selection, [&](const frames::WholeTensor& tensor) { visit.sums(sums_of(tensor)); });
  const auto take = [&](const WholeStep& step) {
    for (updates::PairNames& names : updates::pairs_of(step, selection, notes)) {
      const underflow::UpdateSource source = names.source;
      const std::string weight = names.weight;
      const updates::Pair pair(step, selection, std::move(names));
      if (pair.too_narrow() == nullptr) {
        visit.updates(updates_of(pair, weight, source, step.step));
      }
      if (!visit.sums) continue;
      pair.for_each_tensor(
          [&](const log::NamedTensor& tensor) { tensors.take(step, tensor, step.tell); });
    }
    overflow::for_each_query_and_key(
        step, selection,
        [&](const frames::WholeTensor& tensor) {
          if (auto rows = overflow::rows_of(tensor, true)) visit.rows(std::move(*rows));
        },
        [&](const log::NamedTensor& tensor) {
          if (visit.sums) tensors.take(step, tensor, {});
        });
    if (visit.sums) tensors.take(step, step.tell);
  };
  part.read_whole(take, notes, progress);
  tensors.finish(part.log, notes);
}

}  // namespace halfscope::analyzers::count
