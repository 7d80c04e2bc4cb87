// SPDX-License-Identifier: Apache-2.0
// Policies that keep a scale for every layer or tensor: adaptive loss scaling and FP8 delayed
// scaling. And of all policies: their state is whole.
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "policy/policy_run.hpp"

namespace test_policies_statistics {

using namespace halfscope::policy;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// g = randn(N, K) gs and W = randn(K, M) ws of numpy's RandomState(seed), g drawn first, binary32;
/// figures of loss-scaling traces where the original code ran.
struct AlsCase {
  LayerFacts layer;
  double unbound;
  double alone, after_256;  ///< by what the layers before made of the scale
};
// mean, deviation and largest magnitude of g, then of W; fan in
const AlsCase als_cases[] = {{{-1.56932245e-07, 9.87338444e-06, 3.8016602e-05, -3.12023476e-05,
                               0.0499080345, 0.232997641, 128},
                              12.142545,
                              8,
                              4},
                             {{1.0508685e-09, 9.98637049e-08, 4.16811758e-07, 3.28937058e-05,
                               0.0199918151, 0.0906180516, 512},
                              1498.6031,
                              16,
                              4},
                             {{-4.55203008e-05, 0.000998837175, 0.00410869252, -0.00064466591,
                               0.0503531955, 0.206668109, 64},
                              1,
                              1,
                              1},
                             {{-6.65948647e-08, 1.06907999e-06, 2.4190831e-06, -0.00717609841,
                               0.0891919732, 0.291573763, 10},
                              223.37167,
                              16,
                              4}};

Decision see(Policy& policy, const LayerFacts& layer) {
  return advance(policy, {false, layer.grad_max_abs, &layer});
}

double factor_of(const LayerFacts& layer) {
  Policy policy = make("als");
  REQUIRE(see(policy, layer).error.empty());
  return scale_of(policy);
}

std::vector<float> te_scales(const char* text, const std::vector<double>& magnitudes) {
  Policy policy = make(text);
  CHECK(scale_of(policy) == 1);
  std::vector<float> after;
  for (const double magnitude : magnitudes) {
    CHECK(advance(policy, {!std::isfinite(magnitude), magnitude}).action == Action::apply);
    after.push_back(static_cast<float>(scale_of(policy)));
  }
  return after;
}

TEST_CASE("als: factors of the reference table") {
  for (const AlsCase& known : als_cases) {
    INFO(known.unbound);
    Policy policy = make("als");
    see(policy, known.layer);
    const double unbound = state_of(policy).at("unbound_loss_scale").at(0);
    CHECK(std::abs(unbound - known.unbound) <= 5e-7 * known.unbound);
    CHECK(scale_of(policy) == known.alone);
    LayerFacts later = known.layer;
    later.previous_scale = 256;
    CHECK(factor_of(later) == known.after_256);
  }
}

TEST_CASE("als: bounds") {
  // The largest product times the fan in would overflow: 65504 / 100 / 120000 = 2^-7.5.
  CHECK(factor_of({.grad_mean = 0,
                   .grad_std = 1e-7,
                   .grad_max_abs = 60000,
                   .weight_mean = 0,
                   .weight_std = 1e-3,
                   .weight_max_abs = 2,
                   .fan_in = 100}) == 0x1p-8);
  // Gradients that are all zero are left alone, but the accumulated bound holds.
  CHECK(factor_of({}) == 1);
  CHECK(factor_of({.previous_scale = 4096}) == 0.25);
  // Without a weight the gradient's own deviation counts: 6e-8 / (0.00125331 * 1e-5) = 4.79.
  CHECK(factor_of({.grad_std = 1e-5, .grad_max_abs = 1e-4, .has_weight = false}) == 4);
  // Squares that underflow in binary32: deviation 0, factor 1, where 16 would be wanted.
  CHECK(factor_of(
            {.grad_std = 1e-23, .grad_max_abs = 1e-22, .weight_std = 1e-3, .weight_max_abs = 1}) ==
        1);
}

TEST_CASE("als: a factor just below a power of two is rounded up to it by the logarithm") {
  // 65504 / 8188.00048828125 = 7.9999995, whose binary32 logarithm is 3.
  CHECK(factor_of({.grad_std = 1e-9, .grad_max_abs = 8188.00048828125, .has_weight = false}) == 8);
}

TEST_CASE("als: an update every n iterations keeps the estimate, not the bounds") {
  Policy policy = make("als,update_per_n_iteration=2");
  LayerFacts layer = als_cases[0].layer;
  see(policy, layer);
  CHECK(scale_of(policy) == 8);
  layer.grad_std = 1;
  see(policy, layer);
  CHECK(scale_of(policy) == 8);
  see(policy, layer);
  CHECK(scale_of(policy) == 1);
  layer.previous_scale = 2048;
  see(policy, layer);
  CHECK(scale_of(policy) == 0.5);
}

TEST_CASE("als: a gradient that is not finite ends the run") {
  for (const double bad : {infinity, std::nan("")}) {
    Policy policy = make("als");
    LayerFacts layer = als_cases[0].layer;
    layer.grad_max_abs = bad;
    CHECK(see(policy, layer).error == "ValueError: scale value nan is invalid");
  }
}

TEST_CASE("te-delayed: the known-answer series, with an infinity frozen in the history") {
  const std::vector<double> amax = {1, 2, .5, 0, 8, infinity, 1, 1, 1, 1, 1, 1e-38};
  CHECK(te_scales("te-delayed,fp8_format=E5M2,amax_history_len=4", amax) ==
        std::vector<float>{57344, 28672, 28672, 28672, 7168, 7168, 7168, 7168, 7168, 57344, 57344,
                           57344});
  CHECK(te_scales("te-delayed,fp8_format=E5M2,amax_history_len=4,amax_compute_algo=most_recent",
                  amax) == std::vector<float>{57344, 28672, 114688, 114688, 7168, 7168, 57344,
                                              57344, 57344, 57344, 57344, 3.40282347e38f});
  auto nan = amax;
  nan[5] = NAN;
  CHECK(te_scales("te-delayed,amax_history_len=4", nan) ==
        te_scales("te-delayed,amax_history_len=4", amax));
}

TEST_CASE("te-delayed: formats, margin, history") {
  CHECK(te_scales("te-delayed", {1}) == std::vector<float>{57344});  // a gradient is E5M2
  CHECK(te_scales("te-delayed,fp8_format=E4M3", {1, 3}) == std::vector<float>{448, 448.0f / 3});
  CHECK(te_scales("te-delayed,margin=3", {1}) == std::vector<float>{7168});
  CHECK(te_scales("te-delayed,margin=-1", {1}) == std::vector<float>{114688});
  // Zero does not push 8 out of a history of two.
  CHECK(te_scales("te-delayed,amax_history_len=2", {8, 0, 1, 1}) ==
        std::vector<float>{7168, 7168, 7168, 57344});
  // 1024 steps by default.
  std::vector<double> long_run(1025, 1.0);
  long_run[0] = 4;
  const auto scales = te_scales("te-delayed", long_run);
  CHECK(scales[1023] == 14336);
  CHECK(scales[1024] == 57344);
}

TEST_CASE("every policy goes on from its state with the same bits") {
  const auto magnitude = [](int step) {
    return step % 23 == 22 || step / 110 == 1 ? NAN : std::ldexp(1.0, (step * step) % 17 - 12);
  };
  for (const Policy& policy : all()) {
    const Info& info = info_of(policy);
    const std::string text = std::string(info.name) +
                             (info.interval.empty() ? "" : ",growth_interval=5") +
                             (info.name == "te-delayed" ? ",amax_history_len=5" : "");
    INFO(text);
    Policy whole = make(text), stopped = make(text);
    for (int step = 0; step < 300; ++step) {
      LayerFacts layer = als_cases[step % 4].layer;
      layer.grad_std *= magnitude(step / 23 * 23);
      const Attempt attempt = {overflows(magnitude(step), scale_of(whole)), magnitude(step),
                               &layer};
      const Decision decision = advance(whole, attempt);
      Policy fresh = make(text);
      restore(fresh, state_of(stopped));
      CHECK(advance(fresh, attempt).action == decision.action);
      stopped = fresh;
      const double is = scale_of(stopped), want = scale_of(whole);
      CHECK((is == want || (std::isnan(is) && std::isnan(want))));
      if (!decision.error.empty()) break;
    }
  }
}

}  // namespace test_policies_statistics
