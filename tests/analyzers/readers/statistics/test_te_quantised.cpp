// SPDX-License-Identifier: Apache-2.0
// Statistics of quantised tensors in Transformer Engine's logs.
#include <fmt/format.h>

#include "analyzers/reading.hpp"
#include "catch.hpp"

namespace test_te_quantised {

using namespace halfscope;
using namespace halfscope::test;
using analyzers::frames::QuantisedStatistic;
using analyzers::frames::Recipe;
using log::Role;

std::string line(const std::string& name, int step, const std::string& value) {
  return fmt::format(
      "2026-01-01 00:00:00,000 - INFO - {} \t\t\t\t iteration={:06} \t\t\t\t value={}\n", name,
      step, value);
}

const ToldSeries* find(const Told& told, QuantisedStatistic statistic, Recipe recipe = Recipe::own,
                       bool columnwise = false) {
  for (const ToldSeries& s : told.quantised) {
    if (s.statistic == statistic && s.recipe == recipe && s.columnwise == columnwise) return &s;
  }
  return nullptr;
}

/// Whether a value is what four printed decimals stand for.
bool stands_for(const analyzers::frames::QuantisedValue& value, double printed) {
  return value.low <= printed && value.high >= printed && value.low > printed - 5.001e-5 &&
         value.high < printed + 5.001e-5;
}

TEST_CASE("Transformer Engine, FP8: every statistic, recipe and orientation by its name") {
  const std::pair<std::string, Recipe> recipes[] = {
      {"", Recipe::own},
      {"fp8_delayed_scaling_", Recipe::fp8_delayed_scaling},
      {"fp8_current_scaling_", Recipe::fp8_current_scaling},
      {"fp8_block_scaling_", Recipe::fp8_block_scaling},
      {"mxfp8_", Recipe::mxfp8},
      {"nvfp4_", Recipe::nvfp4}};
  const std::pair<std::string, QuantisedStatistic> statistics[] = {
      {"underflows%", QuantisedStatistic::underflows},
      {"overflows%", QuantisedStatistic::overflows},
      {"scale_inv_min", QuantisedStatistic::scale_inv_min},
      {"scale_inv_max", QuantisedStatistic::scale_inv_max},
      {"mse", QuantisedStatistic::mse}};
  std::string text;
  for (const auto& [prefix, recipe] : recipes) {
    for (const auto& [name, statistic] : statistics) {
      for (const char* const ending : {"", "_columnwise"}) {
        text += line("model.layers.3.mlp.fc1_gradient_" + prefix + name + ending, 7, "1.2345");
      }
    }
  }
  const TempFolder folder;
  const Told told = told_of(folder.write("log", text));
  CHECK(told.quantised.size() == 60);
  CHECK(told.peaks.empty());
  REQUIRE(told.kinds.size() == 1);
  CHECK(told.kinds.front().gaps.empty());
  for (const auto& [prefix, recipe] : recipes) {
    for (const auto& [name, statistic] : statistics) {
      for (const bool columnwise : {false, true}) {
        INFO(prefix << name << columnwise);
        const ToldSeries* const found = find(told, statistic, recipe, columnwise);
        REQUIRE(found != nullptr);
        CHECK(found->layer == "model.layers.3.mlp.fc1");
        CHECK(found->tensor == "gradient");
        CHECK(found->role == Role::activation_grad);
        REQUIRE(found->values.size() == 1);
        CHECK(found->values.front().step == 7);
        CHECK(stands_for(found->values.front(), 1.2345));
        CHECK(found->log_steps == std::vector<std::int64_t>{7});
      }
    }
  }
}

TEST_CASE("Transformer Engine, FP8: bounds stay within what a statistic can be") {
  const TempFolder folder;
  const Told told = told_of(folder.write("log", line("a_weight_underflows%", 1, "0.0000") +
                                                    line("a_weight_underflows%", 2, "100.0000") +
                                                    line("a_weight_underflows%", 3, "-0.0000") +
                                                    line("a_weight_mse", 1, "0.0000")));
  const ToldSeries* const shares = find(told, QuantisedStatistic::underflows);
  REQUIRE(shares != nullptr);
  REQUIRE(shares->values.size() == 3);
  CHECK(shares->values[0].low == 0);
  CHECK(shares->values[0].high > 4.999e-5);
  CHECK(shares->values[1].high == 100);
  CHECK(shares->values[2].low == 0);
  CHECK(find(told, QuantisedStatistic::mse)->values[0].low == 0);
}

TEST_CASE("Transformer Engine, FP8: steps in any order, the last of a step, torn lines") {
  const TempFolder folder;
  const Told told = told_of(folder.write(
      "log",
      line("a_gradient_underflows%", 9, "9.0000") + line("a_gradient_underflows%", 3, "3.0000") +
          line("a_gradient_underflows%", 5, "4.0000") +
          line("a_gradient_underflows%", 5, "5.0000") +
          line("a_gradient_underflows%", 3, "3.5000") + line("b_weight_mse", 1, "1.0000") +
          "INFO - a_gradient_underflows% iteration=7 value=1.0INFO - b iteration=8 value=2\n" +
          "INFO - a_gradient_underflows% iteration=8 val\n" +
          "INFO - a_gradient_underflows% iteration=9"));
  const ToldSeries* const shares = find(told, QuantisedStatistic::underflows);
  REQUIRE(shares != nullptr);
  REQUIRE(shares->values.size() == 3);
  CHECK(shares->values[0].step == 3);
  CHECK(stands_for(shares->values[0], 3.5));
  CHECK(stands_for(shares->values[1], 5));
  CHECK(stands_for(shares->values[2], 9));
  CHECK(shares->log_steps == std::vector<std::int64_t>{1, 3, 5, 9});
  CHECK(told.noted("a line is skipped; the first is line 7: its value is not a number"));
}

TEST_CASE("Transformer Engine, FP8: over ranks the worst") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "nvdlfw_inspect_statistics_logs");
  const std::string in = "nvdlfw_inspect_statistics_logs/nvdlfw_inspect_globalrank-";
  const auto rank = [&](const std::string& name, int step, const std::string& value) {
    return line("a_weight_underflows%", step, value) + line("a_weight_scale_inv_min", step, value) +
           line(name, step, value);
  };
  folder.write(in + "0.log", rank("b_weight_mse", 1, "2.0000") + rank("b_weight_mse", 3, "1.0000"));
  folder.write(in + "1.log", rank("c_weight_mse", 2, "4.0000") + rank("c_weight_mse", 3, "3.0000"));
  const Told told = told_of(folder / "");
  CHECK(told.quantised.size() == 4);
  const ToldSeries* const shares = find(told, QuantisedStatistic::underflows);
  REQUIRE(shares != nullptr);
  REQUIRE(shares->values.size() == 3);
  CHECK(stands_for(shares->values[0], 2));
  CHECK(stands_for(shares->values[1], 4));
  CHECK(stands_for(shares->values[2], 3));
  CHECK(stands_for(find(told, QuantisedStatistic::scale_inv_min)->values[2], 1));
}

TEST_CASE("Transformer Engine, FP8: what cannot be is told with its place and not used") {
  const TempFolder folder;
  const Told told = told_of(folder.write(
      "log",
      line("a_gradient_underflows%", 1, "100.0001") + line("a_gradient_overflows%", 1, "-0.1000") +
          line("a_gradient_underflows%", 2, "nan") + line("a_gradient_mse", 1, "inf") +
          line("a_gradient_mse", 2, "-1.0000") + line("a_gradient_scale_inv_min", 1, "2.0000") +
          line("a_gradient_scale_inv_max", 1, "1.0000") +
          line("a_gradient_scale_inv_min", 2, "1.0000") +
          line("a_gradient_scale_inv_max", 2, "1.0000")));
  CHECK(find(told, QuantisedStatistic::underflows) == nullptr);
  CHECK(find(told, QuantisedStatistic::overflows) == nullptr);
  CHECK(find(told, QuantisedStatistic::mse) == nullptr);
  REQUIRE(find(told, QuantisedStatistic::scale_inv_min) != nullptr);
  CHECK(find(told, QuantisedStatistic::scale_inv_min)->values.size() == 1);
  CHECK(find(told, QuantisedStatistic::scale_inv_max)->values.size() == 1);
  CHECK(
      told.noted("below 0 or above 100: 2 times, first in line 1 "
                 "('a_gradient_underflows%', iteration 1: 100.0001); it is not used"));
  CHECK(told.noted("is NaN or infinite: 2 times, first in line 3"));
  CHECK(told.noted("scale_inv or mse is negative: once, in line 5"));
  CHECK(told.noted("scale_inv_min is above scale_inv_max: once ('a_gradient', iteration 1)"));
}

TEST_CASE("Transformer Engine, FP8: selections") {
  const TempFolder folder;
  std::string text;
  for (int step = 0; step < 10; ++step) {
    text += line("a_gradient_underflows%", step, "1.0000") + line("b_weight_mse", step, "1.0000");
  }
  analyzers::frames::Selection selection;
  selection.first_step = 4;
  selection.end_step = 6;
  selection.tensor_glob = "a*";
  selection.roles = {{"a_*", Role::weight_grad}};
  const Told told = told_of(folder.write("log", text), selection);
  REQUIRE(told.quantised.size() == 1);
  CHECK(told.quantised[0].role == Role::weight_grad);
  CHECK(told.quantised[0].values.size() == 2);
  CHECK(told.quantised[0].log_steps == std::vector<std::int64_t>{4, 5});
}

}  // namespace test_te_quantised
