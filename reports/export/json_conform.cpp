// SPDX-License-Identifier: Apache-2.0
#include "reports/export/json_conform.hpp"

#include "reports/answer/conform_words.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

Json difference_json(const block::Difference& difference) {
  return {{"scales", difference.scales},
          {"codes", difference.codes},
          {"zero_signs", difference.zero_signs},
          {"tensor_scale", difference.second != 0}};
}

Json randomness_json(const block::Randomness& test) {
  return {{"values", test.values},           {"up", test.up},
          {"expected_up", test.expected},    {"standard_deviations", test.sigmas()},
          {"chi_squared", test.chi_squared}, {"fits", test.fits()}};
}

}  // namespace

Json conform_json(const analyzers::blocks::FileConformity& found) {
  const block::Conformity& result = found.conformity;
  Json to = {{"recipe", found.recipe->name},
             {"conforms", result.conforms()},
             {"scales", found.conformity.wanted.scales.size()},
             {"codes", found.conformity.wanted.codes.size()},
             {"different", difference_json(result.difference)}};
  if (const auto at = result.difference.first_scale) {
    to["first_scale"] = {{"index", *at},
                         {"found", found.found.scales[*at]},
                         {"expected", found.conformity.wanted.scales[*at]}};
  }
  if (const auto at = result.difference.first_code) {
    to["first_code"] = {{"index", *at}, {"found", found.found.codes[*at]}};
    if (!result.randomness) to["first_code"]["expected"] = found.conformity.wanted.codes[*at];
  }
  if (result.randomness) to["randomness"] = randomness_json(*result.randomness);
  to["cause"] = answer::name_of(result.cause);
  if (!result.changed.empty()) to["changed"] = result.changed;
  if (result.cause != block::Cause::none) to["left"] = difference_json(result.left);
  return to;
}

}  // namespace halfscope::reports::exports
