// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/user_limit.hpp"

#include <cstdlib>
#include <string>

#include "catch.hpp"

namespace halfscope::log::test_user_limit {
namespace {

TEST_CASE("A user's limit: a whole number in the environment, else the usual one", "[log]") {
  constexpr const char* kName = "HALFSCOPE_TESTED_LIMIT";
  ::unsetenv(kName);
  REQUIRE(user_limit(kName, 7) == 7);
  ::setenv(kName, "18446744073709551615", 1);
  REQUIRE(user_limit(kName, 7) == UINT64_MAX);
  ::setenv(kName, "", 1);
  REQUIRE(user_limit(kName, 7) == 7);
  for (const char* const wrong : {"-1", "1G", " 5", "5 ", "1e9", "18446744073709551616"}) {
    ::setenv(kName, wrong, 1);
    REQUIRE_THROWS_WITH(user_limit(kName, 7),
                        std::string(kName) + ": found '" + wrong +
                            "', expected a whole number of bytes such as 1073741824; correct the "
                            "environment variable or unset it");
  }
  ::unsetenv(kName);
}

}  // namespace
}  // namespace halfscope::log::test_user_limit
