// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/small_run.hpp"
#include "catch.hpp"

namespace test_headroom {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

TEST_CASE("headroom is in binades at the scale a tensor is seen at", "[table]") {
  SmallRun run;
  for (const int step : {0, 1, 2}) run.put_step(step, 1.0, step == 1 ? 2.0f : 1.0f);
  const underflow::Analysis analysis = run.analyze_at(1024);
  const double overflow = std::log2(65520.0);
  bool seen_gradient = false, seen_activation = false;
  for (const overflow::Headroom& h : overflow::find_headroom(analysis)) {
    const underflow::TensorFindings& tensor = analysis.logs[0].tensors[h.tensor];
    if (tensor.name == "weight_grad/b.weight") {
      seen_gradient = true;
      CHECK(h.scale == 1024);
      CHECK(h.least == Approx(overflow - 11));
      CHECK(h.least_at == 1);
      CHECK(h.last == Approx(overflow - 10));
    }
    if (tensor.name == "activation/b") {
      seen_activation = true;
      CHECK(h.scale == 1);
      CHECK(h.least == Approx(overflow - 1));
      CHECK(std::abs(h.trend.value()) < 1e-9);
    }
  }
  CHECK((seen_gradient && seen_activation));
  const overflow::OverflowFindings found = overflow::find_overflow(analysis);
  CHECK(std::is_sorted(found.headroom.begin(), found.headroom.end(),
                       [](const auto& a, const auto& b) { return a.least < b.least; }));
}

TEST_CASE("room at scale 1, and growth over the recorded steps", "[table]") {
  SmallRun run;
  for (const int step : {0, 100, 200}) {
    run.put("weight_grad/b.weight", step, {static_cast<float>(std::exp2(step / 100.0))});
  }
  const overflow::Headroom h = overflow::find_headroom(run.analyze_at(1024)).front();
  CHECK(h.least == Approx(std::log2(65520.0) - 12));
  CHECK(h.least_at_1 == Approx(std::log2(65520.0) - 2));
  CHECK(h.last_at_1 == h.least_at_1);
  CHECK(h.trend.value() == Approx(10));  // in 1000 steps
  CHECK(h.growth().value() == Approx(2));
  CHECK((h.trend_from == 0 && h.trend_to == 200));
}

TEST_CASE("an infinity computed in FP16 leaves at most the room of 65520 over its scale",
          "[table]") {
  SmallRun run(Dtype::f16);
  run.put("weight_grad/b.weight", 0, {1.0f, INFINITY}, 1024.0);
  const auto rooms = overflow::find_headroom(run.analyze_at());
  REQUIRE(rooms.size() == 1);
  CHECK(rooms[0].censored);
  CHECK(rooms[0].least == Approx(10));  // 65520 against 65520 / 1024
}

TEST_CASE("overflow is expected where a clear trend reaches it soon", "[table]") {
  const auto expected = [](auto&& log2_max, int steps) {
    SmallRun run;
    for (int step = 0; step < steps; ++step) {
      run.put("activation/b", 10 * step, {static_cast<float>(std::exp2(log2_max(step)))});
    }
    return overflow::find_headroom(run.analyze_at()).front();
  };
  const double overflow = std::log2(65520.0);
  const overflow::Headroom line = expected([](int i) { return 8.0 + 0.25 * i; }, 20);
  CHECK(line.trend.value() == Approx(25));  // 0.25 binades in 10 steps
  CHECK(line.overflow_expected_at == 10 * static_cast<std::int64_t>(4 * (overflow - 8)) + 10);
  CHECK_FALSE(expected([](int i) { return 0.25 * i; }, 20).overflow_expected_at);  // too far ahead
  CHECK_FALSE(expected([](int i) { return 14.0 - 0.25 * i; }, 20).overflow_expected_at);
  CHECK_FALSE(expected([](int i) { return 12.0 + 0.5 * i; }, 7).overflow_expected_at);  // too few
  CHECK_FALSE(expected([](int i) { return 11.0 + 3 * (i % 2) + 0.1 * i; }, 20)
                  .overflow_expected_at);  // noise
  CHECK_FALSE(expected([](int i) { return i < 10 ? 14.0 : 14.02; }, 20).overflow_expected_at);
  CHECK_FALSE(expected([](int) { return 15.5; }, 2).trend);
}

}  // namespace test_headroom
