// SPDX-License-Identifier: Apache-2.0
// Comparison of a run's ranks as JSON (docs/json.md).
#include <cmath>

#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

using analyzers::ranks::RankComparison;
using analyzers::ranks::RankValues;

Json reasons_json(const RankValues& rank) {
  Json reasons = Json::array();
  if (rank.is_nonfinite) reasons.push_back("nonfinite");
  if (rank.overflows) reasons.push_back("nonfinite_often");
  if (rank.peaks) reasons.push_back("one_step");
  if (rank.departs) reasons.push_back("most_steps");
  if (rank.underflows) reasons.push_back("underflow");
  return reasons;
}

Json rank_json(const RankValues& rank) {
  Json to = {{"rank", rank.rank}, {"steps", rank.steps}, {"max_abs", number_json(rank.max_abs)}};
  if (rank.max_abs) to["max_abs_step"] = rank.max_step;
  if (rank.skew) to["skew"] = *rank.skew;
  if (rank.peak) {
    to["most_above"] = number_json(rank.peak);
    to["most_above_step"] = rank.peak_step;
    to["median_above"] = number_json(rank.middle);
  }
  if (rank.since) to["far_since"] = *rank.since;
  if (rank.nonfinite) {
    to["nonfinite_since"] = rank.nonfinite->step;
    to["nan"] = rank.nonfinite->nan;
  }
  if (rank.overflow) to["overflow_since"] = *rank.overflow;
  if (rank.nonfinite_steps != 0) to["nonfinite_steps"] = rank.nonfinite_steps;
  if (const auto share = rank.underflow()) to["flushed_share"] = *share;
  if (rank.differs()) to["differs"] = reasons_json(rank);
  return to;
}

Json comparison_json(const std::string& log, const RankComparison& all, bool whole) {
  Json to = {{"log", log}, {"role", log::name_of(all.role)}};
  if (all.stride != 1) to["steps_joined"] = all.stride;
  if (all.parts) to["parts"] = true;
  if (all.median_max_abs) to["median_max_abs"] = number_json(all.median_max_abs);
  if (all.median_underflow) to["median_flushed_share"] = *all.median_underflow;
  const auto put_limit = [&to](const char* name, double limit) {
    if (std::isfinite(limit)) to[name] = limit;
  };
  put_limit("limit_one_step", all.peak_limit);
  put_limit("limit_most_steps", all.middle_limit);
  put_limit("limit_underflow", all.underflow_limit);
  to["worst"] = Json::array();
  for (const std::size_t i : all.worst) to["worst"].push_back(all.ranks[i].rank);
  to["by_rank"] = Json::array();
  for (const RankValues& rank : all.ranks) {
    if (whole || rank.differs()) to["by_rank"].push_back(rank_json(rank));
  }
  return to;
}

}  // namespace

void put_ranks(Json& to, const analyzers::Findings& found, bool whole) {
  for (const auto& study : found.ranks) {
    for (const RankComparison& all : study.compared) {
      to["ranks_compared"].push_back(comparison_json(study.log, all, whole));
    }
  }
}

}  // namespace halfscope::reports::exports
