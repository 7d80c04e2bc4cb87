// SPDX-License-Identifier: Apache-2.0
// Comparison of operations with their emulation, as JSON. The fields are in docs/compare.md.
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

using namespace analyzers;

Json both_json(const compare::RunAndEmulation& both) {
  return {{"run", both.run}, {"emulated", both.emulated}};
}

Json sums_json(const compare::OperationSums& sums, const compare::Operations& all) {
  Json to = {{"format", name_of(sums.dtype)},
             {"operations", sums.operations},
             {"identical_operations", sums.identical_operations},
             {"elements", sums.elements},
             {"identical", sums.identical},
             {"within_one_ulp", sums.within_one_ulp},
             {"not_finite_in_one", sums.not_finite_in_one},
             {"elements_of_different", sums.elements_of_different}};
  if (sums.dtype != Dtype::f32) to["beyond_rounding"] = sums.beyond_rounding;
  if (sums.identical_operations != sums.operations) to["worst"] = all.worst(sums.dtype).name;
  return to;
}

Json operation_json(const compare::Operation& o) {
  Json to = {{"operation", o.name},
             {"format", name_of(o.dtype)},
             {"calls", o.calls},
             {"elements", o.elements},
             {"identical", o.identical},
             {"within_one_ulp", o.within_one_ulp},
             {"largest_ulps", o.largest_ulps},
             {"not_finite_in_one", o.not_finite_in_one},
             {"largest_relative_error", o.largest_relative_error},
             {"zero", both_json(o.zero)},
             {"subnormal", both_json(o.subnormal)},
             {"not_finite", both_json(o.not_finite)}};
  if (o.dtype != Dtype::f32) to["beyond_rounding"] = o.beyond_rounding();
  return to;
}

}  // namespace

Json operations_json(const compare::Operations& operations) {
  Json to = {{"first_step", operations.first_step},
             {"last_step", operations.last_step},
             {"formats", Json::array()},
             {"operations", Json::array()}};
  for (const compare::OperationSums& sums : operations.formats) {
    to["formats"].push_back(sums_json(sums, operations));
  }
  for (const compare::Operation& o : operations.all) {
    to["operations"].push_back(operation_json(o));
  }
  return to;
}

}  // namespace halfscope::reports::exports
