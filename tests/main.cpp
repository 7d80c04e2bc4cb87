// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdio>
#include <stdexcept>

#include "halfscope/device/vector_target.hpp"

int main(int argc, char** argv) {
  try {
    halfscope::use_vector_target_of_environment();
  } catch (const std::invalid_argument& e) {
    std::printf("skipped: %s\n", e.what());
    return 77;  // what CTest knows as a skip
  }
  return Catch::Session().run(argc, argv);
}
