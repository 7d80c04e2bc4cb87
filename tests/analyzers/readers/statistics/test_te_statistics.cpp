// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/statistics/statistics.hpp"

#include <fmt/format.h>

#include <cmath>

#include "analyzers/reading.hpp"
#include "catch.hpp"

namespace test_te_statistics {

using namespace halfscope;
using namespace halfscope::test;
using analyzers::frames::Gap;
using log::Role;

std::string line(const std::string& name, int step, const std::string& value) {
  return fmt::format(
      "2026-01-01 00:00:00,000 - INFO - {} \t\t\t\t iteration={:06} \t\t\t\t value={}\n", name,
      step, value);
}

TEST_CASE("Transformer Engine: four decimals are bounds") {
  const TempFolder folder;
  const auto log = folder.write(
      "any-name", "2026-01-01 00:00:00,000 - INFO - Default logging to file enabled\n" +
                      line("mlp.fc1_wgrad_cur_amax", 2, "0.1234") +
                      line("mlp.fc1_wgrad_dynamic_range", 2, "10.0000") +
                      line("mlp.fc1_wgrad_mean", 2, "0.0000") +
                      line("mlp.fc1_dgrad_cur_amax", 2, "0.0000") +
                      line("mlp.fc1_dgrad_dynamic_range", 2, "3.0000"));
  const Told told = told_of(log);
  CHECK(told.frames.empty());
  const auto* const wgrad = told.peak("mlp.fc1_wgrad", 2);
  REQUIRE(wgrad != nullptr);
  CHECK(wgrad->role == Role::weight_grad);
  CHECK(wgrad->max_abs >= 0.12345);
  CHECK(wgrad->max_abs < 0.1234501);
  CHECK(wgrad->at_least.value() <= 0.12335);
  CHECK(wgrad->at_least.value() > 0.1233499);
  // 0.12335 / 2^10.00005, and the roundings of two binary32 logarithms.
  CHECK(wgrad->min_abs_nonzero.value() < 0.12335 / std::exp2(10.00005));
  CHECK(wgrad->min_abs_nonzero.value() > 0.9999 * 0.12335 / 1024);
  const auto* const dgrad = told.peak("mlp.fc1_dgrad", 2);
  REQUIRE(dgrad != nullptr);
  CHECK(dgrad->role == Role::activation_grad);
  CHECK(dgrad->at_least == 0.0);
  CHECK(dgrad->max_abs >= 5e-5);
  CHECK(dgrad->max_abs < 5.0001e-5);
  CHECK(!dgrad->min_abs_nonzero);
  CHECK(told.leaves_open(Gap::rounded));
  CHECK(told.leaves_open(Gap::counts));
  CHECK(told.leaves_open(Gap::loss_scale));
  CHECK(!told.leaves_open(Gap::every_step));
}

TEST_CASE("Transformer Engine: min and max, roles, beside statistics of FP8") {
  const TempFolder folder;
  const auto log = folder.write(
      "log", line("a_gradient_min", 1, "-3.0000") + line("a_gradient_max", 1, "2.0000") +
                 line("a_weight_max", 1, "2.0000") + line("a_output_min", 1, "0.5000") +
                 line("a_output_max", 1, "inf") + line("a_activation_cur_amax", 5, "nan") +
                 line("a_activation_cur_amax", 1, "65504.0000") +
                 line("a_weight_fp8_delayed_scaling_scale_inv_min", 1, "0.5000") +
                 line("a_weight_fp8_delayed_scaling_scale_inv_max", 1, "0.5000") +
                 line("a_weight_fp8_delayed_scaling_underflows%", 1, "12.0000"));
  const Told told = told_of(log);
  const auto* const gradient = told.peak("a_gradient", 1);
  REQUIRE(gradient != nullptr);
  CHECK(gradient->role == Role::activation_grad);
  CHECK(gradient->at_least.value() <= 2.99995);
  CHECK(gradient->max_abs >= 3.00005);
  CHECK(gradient->max_abs < 3.0001);
  const auto* const output = told.peak("a_output", 1);
  REQUIRE(output != nullptr);
  CHECK(output->role == Role::activation);
  CHECK(std::isinf(output->max_abs));
  REQUIRE(told.peak("a_activation", 5) != nullptr);
  CHECK(std::isnan(told.peak("a_activation", 5)->max_abs));
  CHECK(told.peak("a_activation", 1) != nullptr);
  CHECK(told.peak("a_weight", 1) == nullptr);
  std::size_t of_tensors = 0;
  for (const auto& peak : told.peaks) of_tensors += peak.tensor.empty() ? 0 : 1;
  CHECK(of_tensors == 4);
  CHECK(told.leaves_open(Gap::every_step));
}

TEST_CASE("Transformer Engine: the largest over ranks, in the folder of a run") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "nvdlfw_inspect_statistics_logs");
  const std::string in = "nvdlfw_inspect_statistics_logs/nvdlfw_inspect_globalrank-";
  folder.write(in + "0.log",
               line("a_wgrad_cur_amax", 1, "1.0000") + line("a_wgrad_dynamic_range", 1, "1.0000"));
  folder.write(in + "1.log",
               line("a_wgrad_cur_amax", 1, "0.2500") + line("a_wgrad_dynamic_range", 1, "4.0000"));
  const Told told = told_of(folder / "");
  const auto* const peak = told.peak("a_wgrad", 1);
  REQUIRE(peak != nullptr);
  CHECK(peak->max_abs > 1);
  CHECK(peak->at_least.value() > 0.9999);
  CHECK(peak->min_abs_nonzero.value() < 0.25 / 16);
  CHECK(peak->min_abs_nonzero.value() > 0.24 / 16);
}

TEST_CASE("Transformer Engine: bad lines are counted, a value that comes again replaces") {
  const TempFolder folder;
  const auto log = folder.write(
      "log", line("a_wgrad_cur_amax", 1, "1.0000") + line("a_wgrad_cur_amax", 1, "2.0000") +
                 line("a_wgrad_cur_amax", 2, "x") +
                 "INFO - a_wgrad_cur_amax iteration=99999999999999999999 value=1.0000\n" +
                 "INFO - a_wgrad_cur_amax iteration= value=\n" + "iteration=1 value=2\n" +
                 std::string(2'000'000, 'x') + " iteration=1 value=3\n" +
                 std::string("\0\xff\n", 3));
  const Told told = told_of(log);
  REQUIRE(told.peak("a_wgrad", 1) != nullptr);
  CHECK(told.peak("a_wgrad", 1)->max_abs > 1.9);
  CHECK(told.noted("4 lines are skipped; the first is line 3: its value is not a number"));
}

TEST_CASE("Transformer Engine: statistics that contradict each other are told, bounds are wide") {
  const TempFolder folder;
  const auto log = folder.write(
      "log",
      line("crossed_wgrad_min", 1, "0.5001") + line("crossed_wgrad_max", 1, "0.5000") +
          line("crossed_wgrad_min", 2, "3.0000") + line("crossed_wgrad_max", 2, "2.0000") +
          line("crossed_wgrad_min", 3, "3.0000") + line("crossed_wgrad_max", 3, "2.0000") +
          line("crossed_wgrad_cur_amax", 3, "3.0000") + line("other_wgrad_min", 4, "0.5000") +
          line("other_wgrad_max", 4, "1.0000") + line("other_wgrad_cur_amax", 4, "2.0000") +
          line("norm_wgrad_cur_amax", 5, "2.0000") + line("norm_wgrad_l2_norm", 5, "1.0000") +
          line("norm_wgrad_dynamic_range", 5, "3.0000") + line("norm_wgrad_cur_amax", 6, "2.0000") +
          line("norm_wgrad_l2_norm", 6, "0.0000") + line("range_wgrad_cur_amax", 7, "2.0000") +
          line("range_wgrad_dynamic_range", 7, "-3.0000") + line("nan_wgrad_min", 8, "1.0000") +
          line("nan_wgrad_max", 8, "2.0000") + line("nan_wgrad_cur_amax", 8, "nan"));
  const Told told = told_of(log);
  CHECK(told.peak("crossed_wgrad", 1) != nullptr);  // within the rounding of the digits
  CHECK(told.peak("crossed_wgrad", 2) == nullptr);
  REQUIRE(told.peak("crossed_wgrad", 3) != nullptr);
  CHECK(told.peak("crossed_wgrad", 3)->at_least.value() > 2.9);
  CHECK(!told.peak("crossed_wgrad", 3)->min_abs_nonzero);
  CHECK(
      told.noted("min is above max: 2 times, first in line 4 ('crossed_wgrad', iteration 2: "
                 "min=3, max=2); neither is used"));
  const auto* const other = told.peak("other_wgrad", 4);
  REQUIRE(other != nullptr);
  CHECK(other->at_least.value() < 1);
  CHECK(other->max_abs > 2);
  CHECK(!other->min_abs_nonzero);
  CHECK(
      told.noted("the largest magnitude is not that of min and max: once, in line 10 "
                 "('other_wgrad', iteration 4: min=0.5, max=1, amax=2); it is assumed to lie "
                 "anywhere between them"));
  for (const int step : {5, 6}) {
    const auto* const norm = told.peak("norm_wgrad", step);
    REQUIRE(norm != nullptr);
    CHECK(norm->at_least == 0.0);
    CHECK(norm->max_abs > 2);
    CHECK(!norm->min_abs_nonzero);
  }
  CHECK(
      told.noted("the norm is below the largest magnitude: 2 times, first in line 13 "
                 "('norm_wgrad', iteration 5: amax=2, norm=1, dynamic_range=3); the latter is used "
                 "only as an upper bound"));
  REQUIRE(told.peak("range_wgrad", 7) != nullptr);
  CHECK(!told.peak("range_wgrad", 7)->min_abs_nonzero);
  CHECK(
      told.noted("dynamic_range is negative: once, in line 17 ('range_wgrad', iteration 7: "
                 "amax=2, dynamic_range=-3); it is not used"));
  REQUIRE(told.peak("nan_wgrad", 8) != nullptr);
  CHECK(std::isnan(told.peak("nan_wgrad", 8)->max_abs));
  CHECK(told.noted("disagree about infinities or NaN: once, in line 20"));
}

TEST_CASE("Transformer Engine: what may be rounding is no contradiction") {
  const TempFolder folder;
  const Told told = told_of(folder.write(
      "log", line("a_wgrad_min", 1, "-0.1234") + line("a_wgrad_max", 1, "0.1000") +
                 line("a_wgrad_cur_amax", 1, "0.1235") + line("a_wgrad_l2_norm", 1, "0.1230") +
                 line("a_wgrad_cur_amax", 2, "0.0000") + line("a_wgrad_l2_norm", 2, "0.0000") +
                 line("a_wgrad_dynamic_range", 2, "-inf") + line("a_wgrad_min", 3, "1.0000") +
                 line("a_wgrad_max", 3, "60000.0000") + line("a_wgrad_l2_norm", 3, "inf") +
                 line("a_wgrad_min", 4, "nan") + line("a_wgrad_max", 4, "nan") +
                 line("a_wgrad_l2_norm", 4, "nan") + line("a_wgrad_min", 5, "-inf") +
                 line("a_wgrad_max", 5, "1.0000") + line("a_wgrad_cur_amax", 5, "inf") +
                 line("a_wgrad_l2_norm", 5, "inf")));
  CHECK(!told.noted("in line"));
  CHECK(std::isfinite(told.peak("a_wgrad", 3)->max_abs));
  CHECK(std::isinf(told.peak("a_wgrad", 5)->max_abs));
}

}  // namespace test_te_statistics
