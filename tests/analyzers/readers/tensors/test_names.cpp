// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/names.hpp"

#include "catch.hpp"

namespace test_names {

using namespace halfscope::analyzers;

TEST_CASE("step names: the step in a name") {
  const auto step = GENERATE(
      table<const char*, std::int64_t>({{"step-000012", 12},
                                        {"step_12", 12},
                                        {"step12", 12},
                                        {"Step=12", 12},
                                        {"checkpoint-12", 12},
                                        {"global_step12", 12},
                                        {"epoch=3-step=1200", 1200},
                                        {"grads.step_5.rank0", 5},
                                        {"checkpoint-3_step-7", 7},
                                        {"step-9223372036854775807", 9223372036854775807}}));
  INFO(std::get<0>(step));
  CHECK(readers::tensors::step_in_name(std::get<0>(step)) == std::get<1>(step));
  const auto none =
      GENERATE("model", "timestep12", "step", "step-", "steps-12", "step12b", "step--1",
               "model-00001-of-00002", "step-9223372036854775808", "stepwise12", "");
  INFO(none);
  CHECK(!readers::tensors::step_in_name(none));
}

}  // namespace test_names
