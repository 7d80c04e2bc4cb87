// SPDX-License-Identifier: Apache-2.0
#include "analyzers/study.hpp"

#include <utility>

namespace halfscope::analyzers {

Analysis analyze(const std::vector<std::filesystem::path>& logs, const Target& target,
                 const Selection& selection, const Passes& passes, const Phases& phases) {
  const auto phase = [&](const std::string& what) { return phases ? phases(what) : Progress(); };
  Analysis analysis = analyze(logs, target, selection, phase("reading"));
  if (passes.updates) add_updates(analysis, selection, passes.what_if, phase("weight updates"));
  if (passes.formats) {
    add_fits(analysis, selection, {}, phase("whole tensors"));
  } else if (passes.sums) {
    add_sums(analysis, selection, phase("whole tensors"));
  }
  return analysis;
}

namespace {

std::optional<NanInModel> first_in_model(const OverflowFindings& found) {
  for (const OverflowEvent& event : found.events) {
    if (event.cause != Cause::nan_in_model) continue;
    return NanInModel{event.log, event.tensor, event.step, event.nan != 0 || event.inf == 0};
  }
  return std::nullopt;
}

}  // namespace

Study study(Analysis&& analysis, const Selection& selection, const RecommendOptions& options) {
  Study all{std::move(analysis), {}, {}};
  all.overflow = find_overflow(all.analysis);
  all.advice = recommend(all.analysis, options);
  all.advice.nan_in_model = first_in_model(all.overflow);
  complete(all.advice, all.analysis, selection, options);
  return all;
}

}  // namespace halfscope::analyzers
