// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/user_limit.hpp"

#include <cstdlib>

#include "catch.hpp"

namespace halfscope::log::test_user_limit {
namespace {

TEST_CASE("A user's limit: a whole number in the environment, else the usual one", "[log]") {
  constexpr const char* kName = "HALFSCOPE_TESTED_LIMIT";
  ::unsetenv(kName);
  REQUIRE(user_limit(kName, 7) == 7);
  ::setenv(kName, "18446744073709551615", 1);
  REQUIRE(user_limit(kName, 7) == UINT64_MAX);
  for (const char* const wrong : {"", "-1", "1G", " 5", "18446744073709551616"}) {
    ::setenv(kName, wrong, 1);
    REQUIRE(user_limit(kName, 7) == 7);
  }
  ::unsetenv(kName);
}

}  // namespace
}  // namespace halfscope::log::test_user_limit
