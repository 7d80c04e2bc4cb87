// SPDX-License-Identifier: Apache-2.0
// NNabla, Chainer, MXNet, JAX, Paddle, MindSpore and NVIDIA's Caffe. Numbers are of reference
// traces, where the original code ran, or follow by hand from what the frameworks document.
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "policy/policy_run.hpp"

namespace test_policies_other_world {

using namespace halfscope::policy;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Magnitudes that fit no scale at the given steps, and are 0 at others.
auto nan_at(std::vector<int> steps) {
  return [steps](int step) {
    for (const int bad : steps) {
      if (bad == step) return std::nan("");
    }
    return 0.0;
  };
}

TEST_CASE("nnabla grows at the end of steps 2001, 4002 and 6003") {
  for (const char* text : {"nnabla", "nnabla-tutorial"}) {
    INFO(text);
    const Run clean = run(text, 6010, always_zero);
    CHECK(clean.scale[2001] == 8);
    CHECK(clean.scale[2002] == 16);
    CHECK(clean.scale[4002] == 16);
    CHECK(clean.scale[4003] == 32);
    CHECK(clean.scale[6003] == 32);
    CHECK(clean.scale[6004] == 64);
  }
}

TEST_CASE("nnabla tries a step again, 101 times at most") {
  const Run nan = run("nnabla,N=4", 7, nan_at({0}));
  CHECK(nan.attempts == std::vector{101, 1, 1, 1, 1, 1, 1});
  CHECK(nan.skipped == std::vector{0});
  CHECK(exponents(nan.scale) == std::vector{3, -98, -98, -98, -98, -98, -98});
  CHECK(nan.final == 0x1p-97);  // six clean steps

  const Run halved = run("nnabla", 2, [](int step) { return step == 0 ? 0x1p14 : 1.0; });
  CHECK(halved.attempts == std::vector{3, 1});  // 2^17 and 2^16 are too large
  CHECK(halved.skipped.empty());
  CHECK(halved.scale[1] == 2);

  // The step that was tried again is the first clean one.
  const Run later = run("nnabla,N=4", 10, [](int step) { return step == 3 ? 0x1p13 : 1.0; });
  CHECK(later.attempts == std::vector{1, 1, 1, 2, 1, 1, 1, 1, 1, 1});
  CHECK(exponents(later.scale) == std::vector{3, 3, 3, 3, 2, 2, 2, 2, 2, 3});

  // A success ends the count: 60 failures and 60 more are no 101.
  const Run twice =
      run("nnabla,scale=2^200", 2, [](int step) { return step == 0 ? 0x1p-125 : 0x1p-65; });
  CHECK(twice.attempts == std::vector{61, 61});
  CHECK(twice.skipped.empty());
  CHECK(twice.final == 0x1p80);
}

TEST_CASE("nnabla-tutorial leaves the step out instead") {
  const Run nan = run("nnabla-tutorial", 2, nan_at({0}));
  CHECK(nan.attempts == std::vector{1, 1});
  CHECK(nan.skipped == std::vector{0});
  CHECK(nan.scale[1] == 4);
  CHECK(exponents(run("nnabla-tutorial,interval=4", 11, nan_at({3})).scale) ==
        std::vector{3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 3});
}

TEST_CASE("chainer doubles every step until the first overflow, then creeps") {
  const Run s1 = run("chainer,interval=4", 27, [](int step) { return step == 20 ? 1000 : 0.5; });
  for (int step = 0; step < 16; ++step) {
    CHECK(s1.scale[static_cast<std::size_t>(step)] == std::ldexp(1.0, step));
  }
  for (std::size_t step = 16; step <= 20; ++step) CHECK(s1.scale[step] == 65504);
  const double creep[] = {32752, 38948.91143056912, 46318.32259484361, 55082.07878477932, 65504};
  for (std::size_t i = 0; i < 5; ++i) {
    INFO(i);
    CHECK(std::abs(s1.scale[21 + i] - creep[i]) <= 1e-12 * creep[i]);
  }
  CHECK(s1.scale[26] == 65504);
  CHECK(s1.skipped == std::vector{20});
  CHECK(run("chainer", 5, always_nan).final == 1);
  // By default 2^(1/1000) a step.
  const Run slow = run("chainer", 3, nan_at({1}));
  CHECK(std::abs(slow.final - 1.0006933874625807) <= 1e-12);
}

TEST_CASE("chainer with a scale of its own checks nothing") {
  const Run fixed = run("chainer,scale=128", 3, always_nan);
  CHECK(fixed.scale == std::vector<double>(3, 128));
  CHECK(fixed.skipped.empty());
}

TEST_CASE("mxnet decides one step late: each probe ends an octave below the working scale") {
  const Run probe = run("mxnet,scale_window=4", 17, [](int) { return 0.5; });
  CHECK(exponents(probe.scale) ==
        std::vector{16, 16, 16, 16, 16, 17, 17, 16, 15, 15, 15, 15, 16, 16, 16, 16, 17});
  CHECK(probe.skipped == std::vector{5, 6, 16});
  const Run more = run("mxnet,scale_window=4", 21, [](int) { return 0.5; });
  CHECK(exponents({more.scale.begin() + 16, more.scale.end()}) == std::vector{17, 17, 16, 15, 15});

  const Run ceiling = run("mxnet,scale_window=1", 40, always_zero);
  CHECK(ceiling.scale[1] == 0x1p16);
  CHECK(ceiling.scale[2] == 0x1p17);
  CHECK(ceiling.final == 0x1p24);
  const Run down = run("mxnet", 1100, always_nan);  // a Python float has subnormals
  CHECK(down.scale[1091] == 0x1p-1074);
  CHECK(down.scale[1092] == 0);
  CHECK(run("mxnet", 4001, always_zero).scale[2000] == 0x1p16);
  CHECK(run("mxnet", 4001, always_zero).scale[2001] == 0x1p17);
}

TEST_CASE("mxnet-static stays at 128 and checks nothing") {
  const Run fixed = run("mxnet-static", 3, always_nan);
  CHECK(fixed.scale == std::vector<double>(3, 128));
  CHECK(fixed.skipped.empty());
  CHECK(run("mxnet-static,weight=8", 1, always_nan).final == 8);
}

TEST_CASE("jmp grows after its period, refuses infinity and has a floor of the user's") {
  CHECK(exponents(run("jmp,period=4", 9, always_zero).scale) ==
        std::vector{15, 15, 15, 15, 16, 16, 16, 16, 17});
  CHECK(exponents(run("jmp,period=4", 8, nan_at({2})).scale) ==
        std::vector{15, 15, 15, 14, 14, 14, 14, 15});
  CHECK(run("jmp", 2001, always_zero).scale[2000] == 0x1p16);
  CHECK(run("jmp", 40, always_nan).final == 1);
  CHECK(run("jmp,min_loss_scale=0.125", 40, always_nan).final == 0.125);
  CHECK(run("jmp,min_loss_scale=0", 164, always_nan).final == 0x1p-149);
  CHECK(run("jmp,min_loss_scale=0", 165, always_nan).final == 0);
  CHECK(run("jmp,period=1", 200, always_zero).final == 0x1p127);
}

TEST_CASE("flax needs one clean step more, and ends at binary32's ends") {
  CHECK(exponents(run("flax,growth_interval=4", 11, always_zero).scale) ==
        std::vector{16, 16, 16, 16, 16, 17, 17, 17, 17, 17, 18});
  CHECK(exponents(run("flax,growth_interval=4", 9, nan_at({2})).scale) ==
        std::vector{16, 16, 16, 15, 15, 15, 15, 15, 16});
  const Run clean = run("flax", 4003, always_zero);
  CHECK(clean.scale[2000] == 0x1p16);
  CHECK(clean.scale[2001] == 0x1p17);
  CHECK(clean.scale[4002] == 0x1p18);

  const double largest = std::numeric_limits<float>::max();
  const Run up = run("flax,growth_interval=1", 300, always_zero);
  CHECK(up.scale[222] == 0x1p127);
  CHECK(up.scale[224] == largest);
  CHECK(up.final == largest);
  const Run back = run("flax,growth_interval=1", 301, nan_at({300}));
  CHECK(back.final == largest / 2);

  CHECK(run("flax", 141, always_nan).final == 0x1p-125);
  CHECK(run("flax", 300, always_nan).final == 0x1p-126);
  CHECK(run("flax,minimum_scale=None", 300, always_nan).final == 0);
}

TEST_CASE("paddle counts consecutive bad steps only") {
  const Run apart = run("paddle,decr_every_n_nan_or_inf=2", 20,
                        [](int step) { return step % 2 == 0 ? NAN : 0.0; });
  CHECK(apart.final == 0x1p16);
  CHECK(apart.skipped.size() == 10);
  const Run together = run("paddle,decr_every_n_nan_or_inf=2", 6, nan_at({0, 1, 2, 3, 4}));
  CHECK(exponents(together.scale) == std::vector{16, 16, 15, 15, 14, 14});
  CHECK(exponents(run("paddle,incr_every_n_steps=4", 8, nan_at({2})).scale) ==
        std::vector{16, 16, 16, 15, 15, 15, 15, 16});
  CHECK(run("paddle", 2001, always_zero).scale[1999] == 0x1p16);
  CHECK(run("paddle", 2001, always_zero).scale[2000] == 0x1p17);
  CHECK(run("paddle", 40, always_nan).final == 1);
  CHECK(run("paddle,incr_every_n_steps=1", 200, always_zero).final == 0x1p127);
}

TEST_CASE("mindspore's manager ends the run after more than 1000 overflows in a row") {
  const Run dead = run("mindspore", 3000, always_nan);
  REQUIRE(dead.scale.size() == 1001);
  CHECK(dead.error ==
        "RuntimeError: Dynamic loss scale Continuous overflow 1001 times, has exceeded maximum "
        "threshold.");
  CHECK(dead.scale[23] == 2);
  CHECK(dead.scale[24] == 1);
  CHECK(dead.final == 1);
  // One clean step in between, and it goes on.
  const Run alive =
      run("mindspore", 3000, [](int step) { return step % 1001 == 1000 ? 0.0 : NAN; });
  CHECK(alive.error.empty());
  CHECK(alive.scale.size() == 3000);
  CHECK(run("mindspore-cell", 3000, always_nan).error.empty());
  CHECK(run("mindspore-cell", 3000, always_nan).final == 1);
}

TEST_CASE("mindspore's scales grow after their window, without a ceiling") {
  for (const char* text : {"mindspore", "mindspore-cell"}) {
    INFO(text);
    const Run clean = run(text, 4001, always_zero);
    CHECK(clean.scale[0] == 0x1p24);
    CHECK(clean.scale[1999] == 0x1p24);
    CHECK(clean.scale[2000] == 0x1p25);
    CHECK(clean.scale[4000] == 0x1p26);
    const std::string window = std::string(text) + ",scale_window=4";
    CHECK(exponents(run(window.c_str(), 12, nan_at({2})).scale) ==
          std::vector{24, 24, 24, 23, 23, 23, 23, 24, 24, 24, 24, 25});
  }
  CHECK(run("mindspore,scale_window=1", 999, always_zero).final == 0x1p1023);  // a Python float
  const Run beyond = run("mindspore,scale_window=1", 3000, always_zero);  // an integer that is none
  CHECK(beyond.final == infinity);
  CHECK(beyond.scale.size() == 1000);
  CHECK(beyond.error == "OverflowError: int too large to convert to float");
  CHECK(run("mindspore-cell,scale_window=1", 104, always_zero).final == infinity);
}

TEST_CASE("mindspore's manager goes on in integers from its floor") {
  const auto from = [](const char* settings) {
    return run((std::string("mindspore,scale_window=1,scale_factor=3,") + settings).c_str(), 60,
               nan_at({0}));
  };
  // max(2 * (1 / 3), 1) is the integer 1, and 3^36 rounded once; float by float it is one less.
  const Run floor = from("init_loss_scale=2");
  CHECK(floor.scale[1] == 1);
  CHECK(floor.scale[34] == 5559060566555523);
  CHECK(floor.scale[37] == 0x1.0a9f2345c8e37p+57);
  // 4.5 * (1 / 3) is a float, and so are all that follow.
  const Run above = from("init_loss_scale=4.5");
  CHECK(above.scale[1] == 1.5);
  double product = 1.5;
  for (std::size_t step = 2; step < 60; ++step) REQUIRE(above.scale[step] == (product *= 3));
  // An integer's backoff: rounded to a float first.
  CHECK(run("mindspore,scale_window=1,scale_factor=3,init_loss_scale=1", 47, nan_at({45})).final ==
        0x1.ab13886ff818cp+69 * 3);
  // A factor that is not an integer makes floats at once.
  CHECK(run("mindspore,scale_window=1,scale_factor=1.5,init_loss_scale=1", 3, always_zero).final ==
        3.375);
}

TEST_CASE("mindspore's integers outlive a checkpoint") {
  Policy policy = make("mindspore,scale_window=1,scale_factor=3,init_loss_scale=1");
  for (int step = 0; step < 20; ++step) advance(policy, {false, 0.0});
  Policy other = make("mindspore,scale_window=1,scale_factor=3,init_loss_scale=1");
  restore(other, state_of(policy));
  for (int step = 20; step < 36; ++step) advance(other, {false, 0.0});
  CHECK(scale_of(other) == 0x1.0a9f2345c8e37p+57);
}

TEST_CASE("mindspore's cell multiplies by the rounded reciprocal of its factor") {
  // In binary32 5 * (1 / 3) is two units above 5 / 3.
  const Run cell = run("mindspore-cell,loss_scale_value=5,scale_factor=3", 2, nan_at({0}));
  CHECK(cell.scale[1] == 0x1.aaaaacp+0);
}

TEST_CASE("nvcaffe: a static scale from the second iteration on, and nothing is checked") {
  const Run fixed = run("nvcaffe,K=1000", 4, always_nan);
  CHECK(fixed.scale == std::vector<double>{1, 1000, 1000, 1000});
  CHECK(fixed.skipped.empty());
  CHECK(run("nvcaffe,K=1000", 2, [](int) { return 0.5; }).final == 1000);
  CHECK(run("nvcaffe", 4, always_zero).scale == std::vector<double>(4, 1));
}

TEST_CASE("nvcaffe adaptive steers the largest scaled magnitude to 4 K") {
  const double seen[] = {0.5, 3, 1000, NAN, 0.5, 0, infinity, 0.5};
  const Run one = run("nvcaffe,adaptive=true", 8, [&](int step) { return seen[step]; });
  CHECK(one.scale ==
        std::vector<double>{1, 8, 1.3333333730697632, 0.004000000189989805, 1, 8, 1, 1});
  CHECK(one.final == 8);
  CHECK(one.skipped.empty());
  // 10000 times 8 is infinite in binary16, and so counts as 0.
  const Run large = run("nvcaffe,adaptive=true", 3, [](int step) { return step == 1 ? 1e4 : 0.5; });
  CHECK(large.scale == std::vector<double>{1, 8, 1});
  CHECK(run("nvcaffe,adaptive=true,K=16", 2, [](int) { return 0.5; }).final == 128);
}

}  // namespace test_policies_other_world
