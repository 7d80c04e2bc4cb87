// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/conform_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "halfscope/log/error.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {
namespace {

using analyzers::blocks::FileConformity;
using block::Cause;
using block::Difference;

std::string counts(const Difference& left, const FileConformity& found) {
  return fmt::format("{} of {} scales and {} of {} codes{}", count_text(left.scales),
                     count_text(found.conformity.wanted.scales.size()), count_text(left.codes),
                     count_text(found.conformity.wanted.codes.size()),
                     left.second == 0 ? "" : ", and the tensor's scale,");
}

std::string verdict(const FileConformity& found) {
  const block::Conformity& result = found.conformity;
  if (result.difference.equal()) {
    return fmt::format("{}: {} scales and {} codes {}.", found.recipe->name,
                       count_text(found.conformity.wanted.scales.size()),
                       count_text(found.conformity.wanted.codes.size()),
                       !result.randomness ? "have the recipe's bits"
                       : result.randomness->fits()
                           ? "conform: each value rounds to a neighbour, at random"
                           : "round to neighbours, but not at random as the recipe says");
  }
  return fmt::format("{}: {} differ.", found.recipe->name, counts(result.difference, found));
}

std::string first_scale(const FileConformity& found, std::size_t at) {
  const auto value = [&](std::uint32_t stored) {
    return fmt::format("{:#x} ({:g})", stored, block::scale_value(found.recipe->scale, stored));
  };
  return fmt::format("First scale: block {} across, {} down: {}, expected {}.",
                     at % found.conformity.wanted.scale_columns,
                     at / found.conformity.wanted.scale_columns, value(found.found.scales[at]),
                     value(found.conformity.wanted.scales[at]));
}

std::string first_code(const FileConformity& found, std::size_t at) {
  const auto value = [&](std::uint8_t code) {
    return fmt::format("{:#x} ({:g})", code, block::decode(found.recipe->element, code));
  };
  const std::string wanted = found.conformity.randomness
                                 ? "which is no neighbour of the value"
                                 : "expected " + value(found.conformity.wanted.codes[at]);
  return fmt::format("First code: row {}, column {}: {}, {}.", at / found.columns,
                     at % found.columns, value(found.found.codes[at]), wanted);
}

std::string source_of(const std::string& name) {
  const block::Recipe* const recipe = block::find_recipe(name);
  return recipe == nullptr ? "" : fmt::format(" ({})", recipe->source);
}

/// Name of a cause in JSON, and a sentence without its end. {}: Conformity::changed.
struct CauseWords {
  std::string_view name, text;
};
constexpr std::array kCauses = std::to_array<CauseWords>({
    {"none", ""},
    {"dialect", "it is {}"},
    {"scale_rule", "its scales are those of {}"},
    {"least", "a block's largest magnitude counts as at least {} (an eps)"},
    {"ties", "ties round {}"},
    {"no_tensor_scale", "the tensor's scale is missing"},
    {"no_saturation", "values beyond the largest element become infinity or NaN instead of it"},
    {"zero_sign", "zeros have the other sign"},
    {"block_shape", "its blocks have {} values"},
    {"columns", "its blocks run in the other direction"},
    {"hadamard", "it was made {} the Hadamard transform"},
    {"nibbles", "the two codes of each byte are exchanged"},
    {"reciprocal", "{} is the reciprocal of the recipe's"},
    {"input", "the values were rounded to BF16 before they were quantised"},
    {"nearest", "values round to nearest, not at random"},
    {"not_random", "values round by a fixed threshold, not at random"},
    {"biased", "values do not round up with the probability of their fraction"},
});
static_assert(kCauses.size() == static_cast<std::size_t>(Cause::biased) + 1);

const CauseWords& words_of(Cause cause) { return kCauses[static_cast<std::size_t>(cause)]; }

std::string cause_text(const block::Conformity& result) {
  const std::string source = result.cause == Cause::dialect ? source_of(result.changed) : "";
  return fmt::format(fmt::runtime(words_of(result.cause).text), result.changed) + source;
}

std::string cause_line(const FileConformity& found) {
  const block::Conformity& result = found.conformity;
  if (result.cause == Cause::none) {
    return "No known library or single change of the recipe explains half of the differences.";
  }
  const std::string cause = fmt::format("Most likely cause: {}", cause_text(result));
  if (result.difference.equal()) return cause + ".";
  if (result.left.total() == 0) return cause + ". This explains every difference.";
  return fmt::format("{}. {} still differ.", cause, counts(result.left, found));
}

std::string randomness_line(const block::Randomness& test) {
  return fmt::format(
      "Of {} values between two codes, {} round away from zero; {:.0f} are expected ({:+.1f} "
      "standard deviations, at most {:.1f} by chance; chi-squared {:.1f} over 16 ranges of the "
      "fraction, at most {:.1f}; each limit has an error rate of 1e-6).",
      count_text(test.values), count_text(test.up), test.expected, test.sigmas(),
      block::Randomness::kLargestSigmas, test.chi_squared, block::Randomness::kLargestChiSquared);
}

std::string shape_text(const block::Shape& shape) {
  return shape.rows == 0 ? "the tensor" : fmt::format("{} x {}", shape.rows, shape.columns);
}

}  // namespace

std::string_view name_of(Cause cause) { return words_of(cause).name; }

std::vector<std::string> conform_lines(const FileConformity& found) {
  const block::Conformity& result = found.conformity;
  std::vector<std::string> lines = {verdict(found)};
  if (const auto at = result.difference.first_scale) lines.push_back(first_scale(found, *at));
  if (const auto at = result.difference.first_code) lines.push_back(first_code(found, *at));
  if (const auto at = result.difference.first_second) {
    const float is = found.found.second[*at], wanted = found.conformity.wanted.second[*at];
    lines.push_back(fmt::format(
        "Scale of {}: {:a} ({:.9g}), expected {:a} ({:.9g}).",
        found.conformity.wanted.second.size() == 1 ? "the tensor" : fmt::format("row {}", *at), is,
        is, wanted, wanted));
  }
  if (result.randomness && result.randomness->values > 0) {
    lines.push_back(randomness_line(*result.randomness));
  }
  if (!result.conforms()) lines.push_back(cause_line(found));
  return lines;
}

std::vector<RecipeRow> recipe_rows() {
  std::vector<RecipeRow> rows;
  for (const block::Recipe& recipe : block::recipes()) {
    const std::string dialect =
        recipe.dialect_of.empty() ? "" : fmt::format(" for {}", recipe.dialect_of);
    rows.push_back({std::string(recipe.name),
                    fmt::format("{} in {}", name_of(recipe.element), shape_text(recipe.block)),
                    fmt::format("{}{}", recipe.source, dialect)});
  }
  return rows;
}

std::string unknown_recipe_text(const std::string& name) {
  std::vector<std::string> names;
  for (const block::Recipe& recipe : block::recipes()) names.emplace_back(recipe.name);
  return fmt::format(
      "unknown recipe '{}'; the closest is '{}', halfscope quantise --list shows all",
      log::printable(name), nearest(std::move(names), name, 1).front());
}

}  // namespace halfscope::reports::answer
