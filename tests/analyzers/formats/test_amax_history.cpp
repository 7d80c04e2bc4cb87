// SPDX-License-Identifier: Apache-2.0
// Delayed scaling, replayed. Limits worked out by hand: E5M2's largest number is 57344, a magnitude
// rounds beyond it from 61440 on, and to 0 up to 2^-17; of E4M3 these are 448, more than 464, and
// 2^-10.
#include "analyzers/formats/eight_bits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "analyzers/logs.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::formats::test_amax_history {
namespace {

using test::Values;

struct Step {
  std::string name;
  std::int64_t step = 0;
  Values values;
  double scale = 1.0;
  bool flat = false;
};

std::vector<AmaxHistory> histories_of(const std::vector<Step>& steps) {
  const test::TempFolder folder;
  log::RunLogWriter writer(folder / "run", {});
  for (const Step& s : steps) {
    log::TensorRecord record = test::record_of(s.name, s.step, s.values, s.scale);
    if (!s.flat) record.shape = {1, s.values.size()};
    writer.write(record);
  }
  return amax_histories(underflow::analyze({folder / "run"}, {}, {}));
}

/// A tensor of one large and one small value a step.
std::vector<Step> track(const std::string& name, const Values& largest, float small,
                        double scale = 1.0) {
  std::vector<Step> steps;
  for (const float x : largest) {
    const auto s = static_cast<float>(scale);
    steps.push_back({name, static_cast<std::int64_t>(steps.size()), {-x * s, small * s}, scale});
  }
  return steps;
}

/// 20 magnitudes, each so many times the one before.
Values growing(float factor) {
  Values largest = {1};
  while (largest.size() < 20) largest.push_back(largest.back() * factor);
  return largest;
}

const Values kPeakFirst = {8, 1, 1, 1, 1, 2};
const float kSmall = 0x1p-31f;  // flushed where the history holds the 8, kept where it holds 1

TEST_CASE("amax history: clipped and flushed by hand", "[table]") {
  for (const double scale : {1.0, 1024.0}) {  // recorded with a loss scale or without
    const auto all = histories_of(track("activation_grad/a", kPeakFirst, kSmall, scale));
    REQUIRE(all.size() == 1);
    const AmaxHistory& found = all[0];
    CHECK(found.tensors == 1);
    CHECK(found.steps == 5);
    CHECK(found.values == Interval(10));
    REQUIRE(found.choices.size() == 3);
    const auto check = [](const HistoryChoice& choice, std::int64_t length, std::uint64_t clipped,
                          std::uint64_t flushed, double by_chance) {
      CHECK(choice.length == length);
      CHECK(choice.clipped == Interval(clipped));
      CHECK(choice.flushed == Interval(flushed));
      CHECK(choice.clipped_steps == clipped);
      CHECK(choice.most_clipped == (clipped > 0 ? "activation_grad/a" : ""));
      CHECK(std::abs(choice.by_chance - by_chance) < 1e-12);
    };
    check(found.choices[0], 1, 1, 1, 2.5);
    check(found.choices[1], 4, 1, 4, 1.0 / 2 + 1.0 / 3 + 1.0 / 4 + 1.0 / 5 + 1.0 / 5);
    check(found.choices[2], 1024, 0, 5, 1.0 / 2 + 1.0 / 3 + 1.0 / 4 + 1.0 / 5 + 1.0 / 6);
    REQUIRE(found.better() == &found.choices[0]);
    CHECK_FALSE(found.clips());
  }
}

TEST_CASE("amax history: each format clips from its own limit on", "[table]") {
  const auto clipped_steps = [](const std::string& name, float second) {
    return histories_of(track(name, {1, second, 1}, 1)).at(0).at_default().clipped_steps;
  };
  const float e5m2 = 61440.0f / 57344, below = std::nextafter(e5m2, 0.0f);
  CHECK(clipped_steps("activation_grad/a", 1.0715f) == 1);  // 61444 after scaling
  CHECK(clipped_steps("activation_grad/a", below - 1e-6f) == 0);
  CHECK(clipped_steps("activation/a", 1.0358f) == 1);  // 464.04
  CHECK(clipped_steps("weight/a", 1.0357f) == 0);      // 463.99
}

TEST_CASE("amax history: growth is clipped at every length, and fast growth is said") {
  for (const float factor : {2.0f, 2.2f}) {  // margin=1 holds 2 * 61440 / 57344 = 2.14
    const auto all = histories_of(track("activation_grad/a", growing(factor), 1));
    REQUIRE(all.size() == 1);
    const AmaxHistory& found = all[0];
    for (const HistoryChoice& choice : found.choices) CHECK(choice.clipped_steps == 19);
    CHECK(found.with_margin.clipped_steps == (factor > 2 ? 19 : 0));
    CHECK(found.clips() == (factor > 2));
    CHECK(found.better() == nullptr);
  }
}

TEST_CASE("amax history: what cannot be replayed is left out") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(histories_of({{"activation_grad/a", 0, {1}}}).empty());               // one step
  CHECK(histories_of({{"weight/a", 0, {1}}, {"weight/a", 2, {1}}}).empty());  // a gap
  CHECK(histories_of({{"weight/a", 0, {0}}, {"weight/a", 1, {1}}}).empty());  // no history
  CHECK(histories_of({{"loss/a", 0, {1}}, {"loss/a", 1, {1}}}).empty());      // not cast
  CHECK(histories_of({{"weight/a", 0, {1}, 1, true}, {"weight/a", 1, {1}, 1, true}}).empty());
  std::vector<Step> steps = track("weight_grad/a", kPeakFirst, kSmall);
  CHECK(histories_of(steps).at(0).steps == 5);  // of weights, where none of activations is there
  const auto more = track("activation_grad/b", {1, 1}, 1);
  steps.insert(steps.end(), more.begin(), more.end());
  CHECK(histories_of(steps).at(0).steps == 1);
  std::vector<Step> broken = track("activation_grad/a", {8, 1, 1, 1}, 1);
  broken[2].values[1] = nan;
  const AmaxHistory found = histories_of(broken).at(0);
  CHECK(found.steps == 2);
  CHECK(found.left_out == 1);
  CHECK(found.values == Interval(4));
}

/// The same, value by value: what the judge of the next test counts.
struct Judged {
  std::uint64_t clipped = 0, flushed = 0, clipped_steps = 0;
};

Judged judge(const std::vector<Values>& steps, std::size_t length, bool e4m3) {
  Judged judged;
  std::vector<float> amax;
  for (const Values& values : steps) {
    float largest = 0;
    for (const float v : values) largest = std::max(largest, std::abs(v));
    if (!amax.empty()) {
      const auto first = amax.end() - static_cast<std::ptrdiff_t>(std::min(length, amax.size()));
      const float scale = (e4m3 ? 448.0f : 57344.0f) / *std::max_element(first, amax.end());
      const auto clips = [&](float v) {
        const double scaled = double{std::abs(v)} * scale;  // exact: 48 bits
        return e4m3 ? scaled > 464 : scaled >= 61440;
      };
      for (const float v : values) {
        judged.clipped += clips(v);
        judged.flushed += v != 0 && double{std::abs(v)} * scale <= (e4m3 ? 0x1p-10 : 0x1p-17);
      }
      judged.clipped_steps += clips(largest);
    }
    amax.push_back(largest);
  }
  return judged;
}

TEST_CASE("amax history: counts hold value by value, and a run without trend is no alarm") {
  std::mt19937 random(7);
  std::normal_distribution<double> log2(-10, 8);
  constexpr int kSteps = 90;
  for (const bool e4m3 : {false, true}) {
    const std::string name = e4m3 ? "activation/a" : "activation_grad/a";
    std::vector<Values> steps;
    std::vector<Step> records;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      Values values;
      for (int i = 0; i < 300; ++i) values.push_back(static_cast<float>(std::exp2(log2(random))));
      values.push_back(0);
      steps.push_back(values);
      records.push_back({name, step, values});
    }
    const AmaxHistory found = histories_of(records).at(0);
    REQUIRE(found.choices.size() == 5);  // 1, 4, 16, 64, 1024
    for (const HistoryChoice& choice : found.choices) {
      const Judged judged = judge(steps, static_cast<std::size_t>(choice.length), e4m3);
      CHECK(choice.clipped_steps == judged.clipped_steps);
      CHECK(choice.clipped.low <= judged.clipped);
      CHECK(judged.clipped <= choice.clipped.high);
      CHECK(choice.flushed.low <= judged.flushed);
      CHECK(judged.flushed <= choice.flushed.high);
      CHECK(choice.flushed.low > 0);
      CHECK(choice.flushed.high - choice.flushed.low < found.values.high / 10);  // one binade
      CHECK(static_cast<double>(choice.clipped_steps) < 2 * choice.by_chance);
    }
    CHECK_FALSE(found.clips());
  }
}

}  // namespace
}  // namespace halfscope::analyzers::formats::test_amax_history
