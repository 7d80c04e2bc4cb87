// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/statistics/statistics.hpp"

#include <cmath>

#include "analyzers/reading.hpp"
#include "catch.hpp"

namespace test_msprobe {

using namespace halfscope;
using namespace halfscope::test;
using analyzers::frames::Gap;
using log::Role;

TEST_CASE("msprobe: decimals are bounds, roles by the file") {
  const TempFolder folder;
  const std::string rows =
      "0,layers.0.weight,3,-0.000123,0.5,0.000001,12.25,0.1,0\n"
      "1,layers.0.weight,3,0.25,2.0,0.5,3.0,0.0,0\n";
  const std::string header = "vpp_stage,name,step,min,max,mean,norm,zeros,nans\n";
  folder.write("grad_unreduced_0-9.csv", header + rows);
  folder.write("param_origin_0-9.csv", header + rows);
  folder.write("exp_avg_sq_0-9.csv", header + rows);
  const Told told = told_of(folder / "");
  const auto* const peak = told.peak("grad_unreduced/layers.0.weight", 3);
  REQUIRE(peak != nullptr);
  CHECK(peak->role == Role::weight_grad);
  // The column max has one decimal in all of the file, so that is all that is sure of its rounding.
  CHECK(peak->max_abs >= 0.55);
  CHECK(peak->max_abs < 0.5501);
  CHECK(peak->at_least.value() <= 0.45);
  CHECK(!peak->min_abs_nonzero);
  const auto* const stage = told.peak("grad_unreduced/vpp_stage_1/layers.0.weight", 3);
  REQUIRE(stage != nullptr);
  CHECK(stage->min_abs_nonzero.value() <= 0.2499995);
  CHECK(stage->min_abs_nonzero.value() > 0.249999);
  REQUIRE(told.peak("param_origin/layers.0.weight", 3) != nullptr);
  CHECK(told.peak("param_origin/layers.0.weight", 3)->role == Role::weight);
  REQUIRE(told.peak("exp_avg_sq/layers.0.weight", 3) != nullptr);
  CHECK(told.peak("exp_avg_sq/layers.0.weight", 3)->role == Role::optimizer_state);
  CHECK(told.leaves_open(Gap::rounded));
  CHECK(told.leaves_open(Gap::counts));
}

TEST_CASE("msprobe: micro-steps and ranks, NaN, what is no tensor, norms alone") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "out/Dec03_21-34-40-rank0-ab");
  std::filesystem::create_directories(folder / "out/Dec03_21-34-40-rank1-cd");
  const std::string header = "vpp_stage,name,step,micro_step,norm,min,max,nans,shape\n";
  folder.write("out/Dec03_21-34-40-rank0-ab/actv_grad_0-0.csv",
               header + "0,fc.output_grad,0,0,1.000001,-1.000001,0.000001,0,\"[3, 4]\"\n" +
                   "0,fc.output_grad,0,1,1.000001,-2.000001,0.000001,0,\"[3, 4]\"\n" +
                   "0,fc.mask,0,0,nan,nan,nan,nan,nan\n" +
                   "0,fc.bad,0,0,nan,nan,nan,7,\"[3, 4]\"\n" +
                   "0,fc.hidden,0,0,1.000001,-1.000001,1.0,2,\"[3, 4]\"\n" +
                   "0,fc.late,0,0,1.000001,-1.000001,1.0,0,\"[3, 4]\"\n" +
                   "0,fc.inf,0,0,inf,-inf,1.000001,0,\"[3, 4]\"\n");
  folder.write("out/Dec03_21-34-40-rank1-cd/actv_grad_0-0.csv",
               header + "0,fc.output_grad,0,0,8.0,-4.000001,0.000001,0,\"[3, 4]\"\n" +
                   "0,fc.late,0,0,nan,nan,nan,1,\"[3, 4]\"\n");
  folder.write("out/Dec03_21-34-40-rank1-cd/actv_0-0.csv",
               "vpp_stage,name,step,micro_step,norm\n0,fc.output,0,0,8.123456\n");
  const Told told = told_of(folder / "out");
  const auto* const peak = told.peak("actv_grad/fc.output_grad", 0);
  REQUIRE(peak != nullptr);
  CHECK(peak->role == Role::activation_grad);
  CHECK(peak->max_abs >= 4.0000015);
  CHECK(peak->max_abs < 4.0000016);
  CHECK(told.peak("actv_grad/fc.mask", 0) == nullptr);
  for (const char* name : {"actv_grad/fc.bad", "actv_grad/fc.hidden", "actv_grad/fc.late"}) {
    INFO(name);
    REQUIRE(told.peak(name, 0) != nullptr);
    CHECK(std::isnan(told.peak(name, 0)->max_abs));
  }
  REQUIRE(told.peak("actv_grad/fc.inf", 0) != nullptr);
  CHECK(std::isinf(told.peak("actv_grad/fc.inf", 0)->max_abs));
  const auto* const norm = told.peak("actv/fc.output", 0);
  REQUIRE(norm != nullptr);
  CHECK(norm->at_least == 0.0);
  CHECK(norm->max_abs > 8.1234564);
  CHECK(norm->max_abs < 8.12347);
}

TEST_CASE("msprobe: hostile files are told, not crashed on") {
  const TempFolder folder;
  const std::string header = "vpp_stage,name,step,min,max\n";
  const auto log = folder.write(
      "grad_reduced_0-9.csv", header + "0,w,1,0.1,0.2\n" + "0\n" + "0,w\n" + "0,w,x,0.1,0.2\n" +
                                  "0,w,1,a,b\n" + "0,\"w,1,0.1,0.2\n" + std::string(100'000, ',') +
                                  "\n" + std::string("\0,\0,\0\n", 6));
  const Told told = told_of(log);
  CHECK(told.peak("grad_reduced/w", 1) != nullptr);
  CHECK(told.noted("7 lines are skipped; the first is line 3: has too few cells"));
  const Told none =
      told_of(folder.write("grad_reduced_1-1.csv", "vpp_stage,name,step,mean\n0,w,1,2\n"));
  CHECK(none.noted("has neither the ops min and max nor norm"));
}

TEST_CASE("msprobe: cells that contradict each other are told, bounds are wide") {
  const TempFolder folder;
  const Told told = told_of(folder.write("grad_reduced_0-9.csv",
                                         "vpp_stage,name,step,min,max,norm,nans\n"
                                         "0,a,1,0.250001,0.25,1.000001,0\n"
                                         "0,b,2,3.000001,2.0,4.5,0\n"
                                         "0,c,2,3.000001,2.0,,0\n"
                                         "0,d,3,0.500001,2.0,1.0,0\n"
                                         "0,e,4,-2.000001,-0.5,0.0,0\n"
                                         "0,f,5,nan,nan,nan,0\n"
                                         "0,g,6,-inf,2.0,4.0,0\n"));
  CHECK(told.peak("grad_reduced/a", 1) != nullptr);
  const auto* const crossed = told.peak("grad_reduced/b", 2);
  REQUIRE(crossed != nullptr);  // the norm is left
  CHECK(crossed->at_least == 0.0);
  CHECK(crossed->max_abs > 4.5);
  CHECK(crossed->max_abs < 4.7);
  CHECK(told.peak("grad_reduced/c", 2) == nullptr);
  CHECK(
      told.noted("min is above max: 2 times, first in line 3 ('grad_reduced/b', step 2: min=3, "
                 "max=2, norm=4.5); neither is used"));
  for (const auto& [name, step] : {std::pair("grad_reduced/d", 3), {"grad_reduced/e", 4}}) {
    const auto* const norm = told.peak(name, step);
    REQUIRE(norm != nullptr);
    CHECK(norm->at_least == 0.0);
    CHECK(norm->max_abs > 2);
    CHECK(!norm->min_abs_nonzero);
  }
  CHECK(
      told.noted("the norm is below the largest magnitude: 2 times, first in line 5 "
                 "('grad_reduced/d', step 3: min=0.500001, max=2, norm=1)"));
  REQUIRE(told.peak("grad_reduced/f", 5) != nullptr);
  CHECK(std::isnan(told.peak("grad_reduced/f", 5)->max_abs));
  CHECK(told.noted("nans is 0 beside a min, max or norm that is nan: once, in line 7"));
  REQUIRE(told.peak("grad_reduced/g", 6) != nullptr);
  CHECK(std::isinf(told.peak("grad_reduced/g", 6)->max_abs));
  CHECK(told.noted("disagree about infinities or NaN: once, in line 8"));
  const Told silent =
      told_of(folder.write("grad_reduced_1-1.csv", "vpp_stage,name,step,min,max\n0,a,1,nan,nan\n"));
  CHECK(std::isnan(silent.peak("grad_reduced/a", 1)->max_abs));
  CHECK(!silent.noted("in line"));  // nothing denies it
}

}  // namespace test_msprobe
