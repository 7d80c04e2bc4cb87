// SPDX-License-Identifier: Apache-2.0
// Losses of sums in few bits as JSON (docs/json.md).
#include "reports/export/json.hpp"

#include <cmath>
#include <cstdint>

#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

using analyzers::reduction::Estimate;
using analyzers::reduction::Reduction;

/// The name that stands for all tensors together.
constexpr const char* kTogether = "*";

Json range_json(const Estimate& estimate) {
  return Json::array({number_json(estimate.low), number_json(estimate.high)});
}

/// Returns the bounds of a share as counts, rounded outwards.
Json counts_json(const Estimate& share, std::uint64_t of) {
  const auto all = static_cast<double>(of);
  return Json::array({static_cast<std::uint64_t>(std::floor(share.low * all)),
                      static_cast<std::uint64_t>(std::ceil(share.high * all))});
}

Json reduction_json(const Reduction& one) {
  const auto& facts = one.facts;
  Json to = {{"log", one.log},
             {"name", one.name.empty() ? kTogether : one.name},
             {"sum", name_of(one.sum)},
             {"over", name_of(one.over)},
             {"count", one.count},
             {"format", one.format},
             {"order", halfscope::reduction::name_of(one.order)},
             {"additions", facts.additions}};
  if (one.predicted) {
    to["lost"] = counts_json(one.predicted->lost, facts.additions);
    to["lost_share"] = range_json(one.predicted->lost);
    to["relative_l2"] = range_json(one.predicted->relative_l2);
    to["mean_error_ulp"] = to["mean_error_se"] = nullptr;
    to["overflow"] = counts_json(one.predicted->overflow, facts.elements);
    to["predicted"] = true;
    to["recorded"] = one.predicted->recorded;
    return to;
  }
  to["lost"] = facts.lost;
  to["lost_share"] = facts.lost_share();
  to["relative_l2"] = to["mean_error_ulp"] = to["mean_error_se"] = nullptr;
  if (facts.measured() != 0) {
    to["relative_l2"] = number_json(facts.relative_l2());
    to["mean_error_ulp"] = facts.mean_error_ulp();
    to["mean_error_se"] = facts.mean_error_se();
  }
  to["overflow"] = facts.overflow;
  to["flushed"] = facts.flushed;
  to["predicted"] = false;
  to["sums"] = facts.elements;
  if (facts.nonfinite != 0) to["nonfinite"] = facts.nonfinite;
  return to;
}

}  // namespace

Json reductions_json(const std::vector<Reduction>& found) {
  Json to = Json::array();
  for (const Reduction& one : found) to.push_back(reduction_json(one));
  return to;
}

}  // namespace halfscope::reports::exports
