// SPDX-License-Identifier: Apache-2.0
#include "analyzers/study.hpp"

namespace halfscope::analyzers {

Study study(const std::vector<std::filesystem::path>& logs, const Target& target,
            const Selection& selection, const RecommendOptions& options, const Progress& progress) {
  Study all;
  all.analysis = analyze(logs, target, selection, progress);
  add_updates(all.analysis, selection, true, progress);
  add_fits(all.analysis, selection, {options.target_underflow}, progress);
  all.overflow = find_overflow(all.analysis);
  all.advice = recommend(all.analysis, options);
  complete(all.advice, all.analysis, selection, options);
  return all;
}

}  // namespace halfscope::analyzers
