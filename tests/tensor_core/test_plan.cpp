// SPDX-License-Identifier: Apache-2.0
// Orders of k, by table. cublasLt's: test_probe.cpp and test_hardware.cpp.
#include "halfscope/tensor_core/plan.hpp"

#include <stdexcept>

#include "catch.hpp"

namespace test_plan {

using namespace halfscope::tensor_core;

using Steps = std::vector<StepRange>;

TEST_CASE("the steps of a plan", "[tensor_core]") {
  struct Row {
    const char* name;
    Plan plan;
    int length;
    std::int64_t k;
    std::vector<Steps> steps;
  };
  const Row rows[] = {
      {"nothing", {}, 16, 0, {}},
      {"one chain", {}, 16, 40, {{{0, 16}, {16, 16}, {32, 8}}}},
      {"instructions shorter than a step", {.group = 8}, 16, 20, {{{0, 8}, {8, 8}, {16, 4}}}},
      {"instructions of two steps", {.group = 16}, 8, 20, {{{0, 8}, {8, 8}, {16, 4}}}},
      {"instructions of one step and a half", {.group = 12}, 8, 20, {{{0, 8}, {8, 4}, {12, 8}}}},
      {"the rest of 32 first, its short step at its end",
       {.group = 16, .residue = 32},
       16,
       84,
       {{{0, 16}, {16, 4}, {20, 16}, {36, 16}, {52, 16}, {68, 16}}}},
      {"no rest", {.group = 16, .residue = 32}, 16, 32, {{{0, 16}, {16, 16}}}},
      {"slices", {.slice = 20}, 16, 50, {{{0, 16}, {16, 4}}, {{20, 16}, {36, 4}}, {{40, 10}}}},
      {"a rest in each slice",
       {.group = 16, .residue = 16, .slice = 20},
       16,
       40,
       {{{0, 4}, {4, 16}}, {{20, 4}, {24, 16}}}},
      {"the end is dropped", {.slice = 16, .dropped = 3}, 8, 20, {{{0, 8}, {8, 8}}, {{16, 1}}}},
      {"all is dropped", {.dropped = 20}, 8, 20, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(steps_of(row.plan, row.length, row.k) == row.steps);
  }
}

TEST_CASE("plans that make no sense", "[tensor_core]") {
  for (const Plan& plan : {Plan{.group = -1}, Plan{.residue = -1}, Plan{.slice = -1},
                           Plan{.dropped = -1}, Plan{.dropped = 6}}) {
    CHECK_THROWS_AS(steps_of(plan, 16, 5), std::invalid_argument);
  }
  CHECK_THROWS_WITH(steps_of({}, 0, 5),
                    "halfscope::tensor_core: Unit::length is 0, expected 1 or more");
  CHECK_FALSE(plan_of({.algorithm = 24, .stages = -1}, 100));
  CHECK_FALSE(plan_of({.algorithm = 24, .stages = 26}, 100));
  CHECK_FALSE(plan_of({.algorithm = 24, .stages = 7, .slices = 2, .reduction = 3}, 100));
  CHECK(plan_of({.algorithm = 24, .stages = 7, .slices = 2, .reduction = 1}, 100)->merge ==
        Merge::running_sum);
}

}  // namespace test_plan
