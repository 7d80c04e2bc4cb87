// SPDX-License-Identifier: Apache-2.0
// TensorFlow, Keras and OpenSeq2Seq. Numbers are of reference traces, where the original code ran,
// or follow by hand from what the frameworks document.
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "policy/policy_run.hpp"

namespace test_policies_tensorflow {

using namespace halfscope::policy;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST_CASE("TensorFlow's scales grow after their interval, and an overflow starts it anew") {
  for (const char* text : {"tf1", "keras2", "keras3", "tf-contrib"}) {
    INFO(text);
    const Run clean = run(text, 4002, always_zero);
    CHECK(clean.scale[0] == 0x1p15);
    CHECK(clean.scale[1999] == 0x1p15);
    CHECK(clean.scale[2000] == 0x1p16);
    CHECK(clean.scale[3999] == 0x1p16);
    CHECK(clean.scale[4000] == 0x1p17);
    CHECK(clean.skipped.empty());
  }
  for (const char* text : {"tf1,increment_period=4", "keras2,dynamic_growth_steps=4",
                           "keras3,dynamic_growth_steps=4", "tf-contrib,incr_every_n_steps=4"}) {
    INFO(text);
    const Run one = run(text, 8, [](int step) { return step == 2 ? NAN : 0.0; });
    const int low = std::string(text).starts_with("tf-contrib") ? 15 : 14;  // it forgives one
    CHECK(exponents(one.scale) == std::vector{15, 15, 15, low, low, low, low, low + 1});
    CHECK(one.skipped == std::vector{2});
  }
}

TEST_CASE("tf1 and keras2 stop at 1, and refuse growth to infinity") {
  for (const char* text : {"tf1,increment_period=1", "keras2,dynamic_growth_steps=1"}) {
    INFO(text);
    const Run down = run(text, 40, always_nan);
    CHECK(down.scale[14] == 2);
    CHECK(down.scale[15] == 1);
    CHECK(down.scale[39] == 1);
    const Run up = run(text, 200, always_zero);
    CHECK(up.scale[111] == 0x1p126);
    CHECK(up.scale[112] == 0x1p127);
    CHECK(up.scale[199] == 0x1p127);
    CHECK(up.skipped.empty());
  }
  CHECK(run("tf1,multiplier=3,initial_loss_scale=10", 1, always_nan).final == 10.0f / 3.0f);
}

TEST_CASE("keras3 grows to infinity and is stuck there, or falls to zero") {
  const Run up = run("keras3,dynamic_growth_steps=1", 300, always_zero);
  CHECK(up.scale[112] == 0x1p127);
  CHECK(up.scale[113] == infinity);
  CHECK(up.final == infinity);
  REQUIRE(up.skipped.size() == 187);  // all from 113 on
  CHECK(up.skipped.front() == 113);

  const Run down = run("keras3", 200, always_nan);
  CHECK(down.scale[164] == 0x1p-149);  // the smallest binary32 number
  CHECK(down.scale[165] == 0);
}

TEST_CASE("tf-contrib: bad steps add up over good ones until the scale changes") {
  const Run apart = run("tf-contrib,init_loss_scale=131072", 12,
                        [](int step) { return step % 4 == 1 ? NAN : 0.0; });
  CHECK(apart.skipped == std::vector{1, 5, 9});
  CHECK(apart.scale[5] == 131072);
  CHECK(apart.scale[6] == 104857.6015625);  // 2^17 times 0.8 in binary32
  CHECK(apart.final == 104857.6015625);     // the third stands alone

  const Run cleared = run("tf-contrib,init_loss_scale=65536,incr_every_n_steps=3", 7,
                          [](int step) { return step == 0 || step == 4 || step == 5 ? NAN : 0.0; });
  CHECK(cleared.scale ==
        std::vector<double>{65536, 65536, 65536, 65536, 131072, 131072, 104857.6015625});
  // Twice 0.8, rounded each time: as in series S1.
  CHECK(run("tf-contrib,init_loss_scale=131072", 4, always_nan).final == 83886.0859375);
  CHECK(run("tf-contrib", 200, always_nan).final == 1);
  CHECK(run("tf-contrib,incr_every_n_steps=1", 200, always_zero).final == 0x1p127);
}

TEST_CASE("os2s-backoff starts at its ceiling, its race moves growth by a step") {
  const Run clean = run("os2s-backoff,step_window=1", 4, always_zero);
  CHECK(clean.scale == std::vector<double>(4, 16384));
  CHECK(run("os2s-backoff", 30, always_nan).final == 1);
  CHECK(run("os2s-backoff,scale_min=0.25", 30, always_nan).final == 0.25);

  const std::string text = "os2s-backoff,initial_scale=1,step_window=4,iteration_read=";
  CHECK(exponents(run((text + "before").c_str(), 9, always_zero).scale) ==
        std::vector{0, 0, 0, 0, 1, 1, 1, 1, 2});
  CHECK(exponents(run((text + "after").c_str(), 9, always_zero).scale) ==
        std::vector{0, 0, 0, 1, 1, 1, 1, 2, 2});
  const Run late =
      run((text + "before,scale_max=8").c_str(), 8, [](int step) { return step == 2 ? NAN : 0.0; });
  CHECK(exponents(late.scale) == std::vector{0, 0, 0, 0, 0, 0, 0, 1});  // four steps after it
  CHECK_THROWS_WITH(make(text + "during"), Catch::Matchers::Contains("before, after"));
}

TEST_CASE("os2s-logmax follows the trace of the original") {
  const double after[] = {16777216,   16295558,   5827283,    2148051.75, 2398144.5,
                          3039724.5,  3023176.25, 2147364.75, 2240051.25, 2581987.75,
                          2641719.5,  2147458.5,  2201406.25, 2435318.5,  2493394,
                          2147231.25, 1,          1,          1,          1};
  const Run trace = run("os2s-logmax,scale_max=2^24", 20, [](int step) {
    return step < 16 ? std::ldexp(1.0, -10 + step % 4) : step == 16 ? NAN : 0.001;
  });
  REQUIRE(trace.scale[0] == 1);
  for (int step = 0; step < 20; ++step) {
    INFO(step);
    const double got = step < 19 ? trace.scale[static_cast<std::size_t>(step) + 1] : trace.final;
    CHECK(std::abs(got - after[step]) <= 1e-3 * after[step]);
  }
  CHECK(trace.skipped == std::vector{16});
}

TEST_CASE("os2s-logmax: one NaN pins the scale at 1 for eleven thousand steps") {
  const Run run_ = run("os2s-logmax", 16000, [](int step) { return step == 2500 ? NAN : 1e-3; });
  CHECK(run_.scale[2500] == 16384);
  // Left by steps 13510, 13511; 15059, 15060: index i is left by step i - 1.
  for (std::size_t i = 2501; i <= 13511; ++i) REQUIRE(run_.scale[i] == 1);
  CHECK(run_.scale[13512] > 1);
  for (std::size_t i = 13512; i <= 15060; ++i) REQUIRE(run_.scale[i] < 16384);
  for (std::size_t i = 15061; i < 16000; ++i) REQUIRE(run_.scale[i] == 16384);
  CHECK(run_.skipped == std::vector{2500});
}

TEST_CASE("os2s-logmax: gradients that are all zero make the scale NaN for good") {
  const Run zero = run("os2s-logmax", 50, [](int step) { return step == 3 ? 0.0 : 1e-3; });
  CHECK(zero.scale[3] > 0);
  for (std::size_t step = 4; step < 50; ++step) CHECK(std::isnan(zero.scale[step]));
  CHECK(zero.skipped.size() == 46);
}

}  // namespace test_policies_tensorflow
