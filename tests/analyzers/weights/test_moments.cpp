// SPDX-License-Identifier: Apache-2.0
// Moments in few bits. The judge rounds by itself: BF16 by adding half a unit to the bits, FP16 by
// the CPU's F16C, E4M3 by the nearest of its numbers.
#include "analyzers/weights/moments.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "analyzers/logs.hpp"
#include "catch.hpp"
#include "f16c.hpp"

namespace test_moments {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::analyzers::weights;
using test::TempFolder;
using test::Values;

float judged_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000U);
}

float judged_f16(float x) {
#ifdef HALFSCOPE_TEST_F16C
  const unsigned bits = f16c::convert(std::bit_cast<std::uint32_t>(x), f16c::Control::nearest).bits;
  const unsigned field = bits >> 10 & 31, rest = bits & 1023;
  const float size = field == 0 ? std::ldexp(static_cast<float>(rest), -24)
                                : std::ldexp(static_cast<float>(1024 + rest), int(field) - 25);
  return bits >> 15 != 0 ? -size : size;
#else
  return x;
#endif
}

float e4m3_number(int code) {
  const int field = code >> 3, rest = code & 7;
  return field == 0 ? std::ldexp(float(rest), -9) : std::ldexp(float(8 + rest), field - 10);
}

/// The nearest number of E4M3, by search; of two the one with an even code.
float judged_e4m3(float x) {
  int best = 0;
  const auto away = [&](int code) { return std::abs(double{e4m3_number(code)} - std::abs(x)); };
  for (int code = 1; code <= 126; ++code) {
    if (away(code) < away(best) || (away(code) == away(best) && code % 2 == 0)) best = code;
  }
  return std::copysign(e4m3_number(best), x);
}

void judge_store(std::string_view format, Values& values) {
  if (format == "binary32") return;
  float scale = 1, largest = 0;
  if (format == "e4m3-1x256") {
    for (const float x : values) largest = std::max(largest, std::abs(x));
    scale = std::max(largest, 1e-12F) / 448;
  }
  for (float& x : values) {
    x = format == "bfloat16"   ? judged_bf16(x)
        : format == "binary16" ? judged_f16(x)
                               : judged_e4m3(x / scale) * scale;
  }
}

struct Judged {
  Values m, v;
};

/// Adam's moments after each gradient, stored in the format.
Judged judge(std::string_view format, const std::vector<Values>& gradients, std::uint64_t steps,
             float beta1, float beta2, Judged start = {}) {
  Judged now = start;
  const std::size_t ahead = start.m.empty() ? 0 : 1;
  now.m.resize(gradients[0].size());
  now.v.resize(gradients[0].size());
  if (ahead == 1) judge_store(format, now.m), judge_store(format, now.v);
  const auto first = float(1 - double{beta1}), second = float(1 - double{beta2});
  for (std::uint64_t t = 0; t < steps; ++t) {
    const Values& g = gradients[(t + ahead) % gradients.size()];
    for (std::size_t i = 0; i < g.size(); ++i) {
      const float difference = g[i] - now.m[i], change = first * difference;
      now.m[i] += change;
      const float kept = beta2 * now.v[i], scaled = second * g[i], added = scaled * g[i];
      now.v[i] = kept + added;
    }
    judge_store(format, now.m);
    judge_store(format, now.v);
  }
  return now;
}

std::vector<Values> random_gradients(std::size_t steps, std::size_t elements, unsigned seed,
                                     int binades = 12) {
  std::mt19937 words(seed);
  std::normal_distribution<float> normal;
  std::vector<Values> all(steps, Values(elements));
  for (std::size_t i = 0; i < elements; ++i) {
    const int size = -int(words() % unsigned(binades));
    for (Values& g : all) g[i] = std::ldexp(normal(words), size);
  }
  return all;
}

// Betas whose binary32 and binary64 agree, so that the judge has the same constants.
constexpr double kBeta1 = 0.875, kBeta2 = 1 - 0x1p-10;

TEST_CASE("moments have the bits of a judge that rounds by itself", "[oracle]") {
  for (const MomentStorage& storage : kMomentStorages) {
    if (storage.stochastic) continue;
#ifdef HALFSCOPE_TEST_F16C
    if (storage.name == "binary16" && !f16c::available()) continue;
#else
    if (storage.name == "binary16") continue;
#endif
    for (const bool started : {false, true}) {
      BlockGradients block = {.gradients = random_gradients(7, 256, 1),
                              .adam = {.beta1 = kBeta1, .beta2 = kBeta2}};
      Judged start;
      if (started) {
        block.first = start.m = random_gradients(1, 256, 2)[0];
        block.second = start.v = random_gradients(1, 256, 3)[0];
        for (float& v : start.v) v = std::abs(v);
        block.second = start.v;
      }
      const BlockMoments found = replay_block(block, &storage, 100, 5);
      const Judged wanted =
          judge(storage.name, block.gradients, 100, float(kBeta1), float(kBeta2), start);
      INFO(storage.name << (started ? " from state" : ""));
      CHECK(found.first == wanted.m);
      CHECK(found.second == wanted.v);
    }
  }
}

TEST_CASE("stochastic rounding is unbiased, and takes neighbours alone", "[oracle]") {
  for (const MomentStorage& storage : kMomentStorages) {
    if (!storage.stochastic) continue;
    Values v = random_gradients(1, 256, 8, 6)[0];
    for (float& x : v) x = std::min(3.5F, std::abs(x));
    v[0] = 4;  // the largest, and a scale that stays, by the gradient of 2
    BlockGradients block = {.gradients = {Values(256), Values(256)},
                            .first = Values(256),
                            .second = v,
                            .adam = {.beta1 = kBeta1, .beta2 = kBeta2}};
    block.gradients[1][0] = 2;
    judge_store(storage.name, block.second);  // such that the start is stored as it is
    double sum = 0, squares = 0, trials = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      const BlockMoments found = replay_block(block, &storage, 1, 10 * seed);
      double mean = 0;
      for (std::size_t i = 0; i < 256; ++i) {
        const float exact = i == 0 ? 4 : block.second[i] * float(kBeta2);
        CHECK_THAT(found.second[i], Catch::Matchers::WithinRel(exact, 0.126F) ||
                                        Catch::Matchers::WithinAbs(exact, 4 / 448.0 / 512));
        mean += (found.second[i] / double{exact} - 1) / 256;
      }
      sum += mean;
      squares += mean * mean;
      trials += 1;
    }
    const double error = std::sqrt((squares / trials - sum * sum / trials / trials) / trials);
    INFO(storage.name << ": " << sum / trials << " +- " << error);
    CHECK(std::abs(sum / trials) < 4 * error);
    CHECK(error > 0);
  }
}

/// A run of torch.optim's AdamW, with these tensors of sampled steps.
class Run {
 public:
  explicit Run(const std::string& optimizer = "torch.optim.AdamW") {
    (*manifest_.about)["optimizer"] = {
        {"class", optimizer},
        {"param_groups", {{{"eps", 1e-8}, {"betas", {kBeta1, kBeta2}}, {"lr", 0.001}}}}};
  }
  void sample(std::int64_t step, const std::vector<std::pair<std::string, Values>>& tensors,
              const std::map<std::string, std::string>& metadata = {}) {
    std::vector<log::NamedTensor> named;
    for (const auto& [name, values] : tensors) {
      named.push_back({name, {values.size()}, test::view_of(values)});
    }
    writer().write_sample(step, named, metadata);
  }
  MomentReplay replay(std::uint64_t steps) {
    writer();
    return replay_moments(folder_ / "run", {}, steps);
  }
  std::string refusal() {
    try {
      replay(1);
    } catch (const log::BadInput& e) {
      return e.what();
    }
    return "";
  }

 private:
  log::RunLogWriter& writer() {
    if (!writer_) writer_ = std::make_unique<log::RunLogWriter>(folder_ / "run", manifest_);
    return *writer_;
  }
  const TempFolder folder_;
  log::Manifest manifest_;
  std::unique_ptr<log::RunLogWriter> writer_;
};

constexpr const char* kName = "weight_grad/a";

TEST_CASE("stalled and vanished second moments are counted", "[table]") {
  Values g(256);
  for (int i = 0; i < 100; ++i) g[std::size_t(i)] = 1 + float(i) / 64;
  for (int i = 100; i < 104; ++i) g[std::size_t(i)] = 1e-4F;  // v of 1e-11: 0 in FP16 and in E4M3
  g[104] = 0x1p-8F;
  Run run;
  run.sample(3, {{kName, g}});
  const MomentReplay found = run.replay(1);
  REQUIRE(found.stored.size() == kMomentStorages.size());
  CHECK(found.elements == 256);
  CHECK(found.gradients == 1);
  CHECK(found.first_step == 3);
  const StoredMoments &bf16 = found.stored[0], &f16 = found.stored[2], &e4m3 = found.stored[4];
  CHECK(bf16.positive == 105);
  CHECK(bf16.stalled == 105);  // 2^-10 is less than half of 2^-8, the gap below a power of two
  CHECK(bf16.vanished == 0);
  CHECK(f16.vanished == 5);  // v of g = 2^-8 is 2^-26, less than half of FP16's smallest number
  CHECK(f16.positive == 100);
  std::uint64_t stalled = 0;
  for (int i = 0; i < 100; ++i) {
    const float v = judged_f16(0x1p-10F * g[std::size_t(i)] * g[std::size_t(i)]);
    stalled += judged_f16(v * float(kBeta2)) == v ? 1 : 0;
  }
  CHECK(f16.stalled == stalled);
  CHECK(stalled < 100);
  // The largest g is 163 / 64. The v of 2^-8 is 0.00105 units of the scale, above 2^-10, half of
  // E4M3's smallest number; that of 1e-4 is 7e-7, and its m 0.018.
  CHECK(e4m3.positive == 101);
  CHECK(e4m3.stalled == 101);  // 2^-10 is less than half of 2^-4
  CHECK(e4m3.vanished == 4);
  CHECK(found.stored[1].stalled == 0);
}

TEST_CASE("shifts are those of a judge, over all tensors", "[oracle]") {
  const auto a = random_gradients(5, 700, 21), b = random_gradients(5, 300, 22);
  Run run;
  for (std::size_t k = 0; k < 5; ++k) {
    run.sample(std::int64_t(10 * k), {{kName, a[k]}, {"weight_grad/b", b[k]}});
  }
  run.sample(50, {{kName, a[0]}}, {{"found_inf", "1"}});  // a skipped step
  constexpr std::uint64_t kSteps = 60;
  const MomentReplay found = run.replay(kSteps);
  CHECK(found.tensors == 2);
  CHECK(found.elements == 1000);
  CHECK(found.all_elements == 1000);
  CHECK(found.gradients == 5);
  CHECK(found.last_step == 40);
  CHECK_FALSE(found.from_state);
  std::vector<std::pair<double, double>> blocks_v, blocks_step;
  const double root = std::sqrt(1 - std::pow(kBeta2, kSteps)), c = 1 - std::pow(kBeta1, kSteps);
  for (const auto& gradients : {a, b}) {
    const Judged wide = judge("binary32", gradients, kSteps, float(kBeta1), float(kBeta2));
    const Judged held = judge("bfloat16", gradients, kSteps, float(kBeta1), float(kBeta2));
    const Judged before = judge("bfloat16", gradients, kSteps - 1, float(kBeta1), float(kBeta2));
    for (std::size_t i = 0; i < wide.m.size(); ++i) {
      if (i % 256 == 0) blocks_v.emplace_back(), blocks_step.emplace_back();
      const float g = gradients[(kSteps - 1) % 5][i];
      const float kept = before.v[i] * float(kBeta2), scaled = 0x1p-10F * g;
      const float v = kept + scaled * g;  // in binary32, before it is stored
      const double s32 = wide.m[i] / c / (std::sqrt(double{wide.v[i]}) / root + 1e-8);
      const double s = wide.m[i] / c / (std::sqrt(double{v}) / root + 1e-8);
      blocks_v.back().first += double{held.v[i]} / wide.v[i] - 1;
      blocks_v.back().second += 1;
      blocks_step.back().first += s32 < 0 ? s32 - s : s - s32;
      blocks_step.back().second += std::abs(s32);
    }
  }
  const auto check = [](const std::vector<std::pair<double, double>>& blocks,
                        const MomentShift& shift) {
    double d = 0, w = 0, rest = 0;
    for (const auto& [x, y] : blocks) d += x, w += y;
    for (const auto& [x, y] : blocks) rest += (x - d / w * y) * (x - d / w * y);
    const auto n = double(blocks.size());
    CHECK(shift.mean == Approx(d / w).epsilon(1e-9));
    CHECK(shift.error == Approx(std::sqrt(n / (n - 1) * rest) / w).epsilon(1e-9));
  };
  check(blocks_v, found.stored[0].shifts[of_second]);
  check(blocks_step, found.stored[0].shifts[step_second]);
}

TEST_CASE("BF16 second moments that cannot decay make steps short", "[table]") {
  auto g = random_gradients(40, 4096, 31, 1);
  Run run;
  for (std::size_t k = 0; k < g.size(); ++k) run.sample(std::int64_t(k), {{kName, g[k]}});
  const MomentReplay found = run.replay(3000);
  const StoredMoments &nearest = found.stored[0], &stochastic = found.stored[1];
  CHECK(nearest.stalled == 4096);
  CHECK(fit_of(nearest.shifts[step_second]) == MomentFit::fails);
  CHECK(fit_of(nearest.shifts[step_first]) == MomentFit::fits);
  CHECK(fit_of(stochastic.shifts[step_second]) == MomentFit::fits);
  CHECK(std::abs(stochastic.shifts[of_second].mean) < 4 * stochastic.shifts[of_second].error);
}

TEST_CASE("a replay starts from recorded moments, and the next gradient", "[table]") {
  const Values g0(256, 1), g1(256, 2), m(256, 0.5F), v(256, 0.25F), steps = {7};
  Run run;
  run.sample(6, {{kName, g0},
                 {"optimizer_state/exp_avg/a", m},
                 {"optimizer_state/exp_avg_sq/a", v},
                 {"optimizer_state/step/a", steps}});
  run.sample(7, {{kName, g1}});
  const MomentReplay found = run.replay(1);
  CHECK(found.from_state);
  CHECK(found.first_step == 6);
  // v = (1 - 2^-10) / 4 + 2^-10 * 4 = 0.25 + 15 * 2^-12, 2^-8 of its first bit less 2^-12
  const double exact = 0.25 + 15 * 0x1p-12, stored = 0.25 + 0x1p-8;  // 2^-9 is a unit in BF16
  CHECK(found.stored[0].shifts[of_second].mean == Approx(stored / exact - 1).epsilon(1e-12));
}

TEST_CASE("large tensors are replayed in blocks at even distances", "[table]") {
  Values g(3 << 18, 1);
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = i / 256 % 3 == 0 ? 1 : NAN;
  Run run;
  run.sample(0, {{kName, g}});
  const MomentReplay found = run.replay(1);
  CHECK(found.elements == 1 << 18);
  CHECK(found.all_elements == 3 << 18);
  CHECK(found.nonfinite == 0);
}

TEST_CASE("values that are not finite count in no mean", "[table]") {
  Values g(512, 1);
  g[1] = INFINITY;
  g[2] = NAN;
  g[3] = 1e10F;  // v is infinite in FP16 alone
  Run run;
  run.sample(0, {{kName, g}});
  const MomentReplay found = run.replay(2);
  CHECK(found.nonfinite == 2);
  CHECK(std::isfinite(found.stored[0].shifts[step_both].mean));
  CHECK(found.stored[2].positive == 509);
}

TEST_CASE("input that cannot be replayed is named", "[table]") {
  CHECK_THAT(Run().refusal(), Catch::Matchers::Contains("found no whole weight gradients"));
  Run other("torch.optim.SGD");
  other.sample(0, {{kName, Values(3, 1)}});
  CHECK_THAT(other.refusal(), Catch::Matchers::Contains("is not Adam"));
  Run weights;
  weights.sample(0, {{"weight/a", Values(3, 1)}});
  CHECK_THAT(weights.refusal(), Catch::Matchers::Contains("sample_every"));
}

}  // namespace test_moments
