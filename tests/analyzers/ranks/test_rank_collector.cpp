// SPDX-License-Identifier: Apache-2.0
#include "analyzers/ranks/rank_collector.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>

#include "analyzers/logs.hpp"
#include "analyzers/study.hpp"
#include "catch.hpp"

namespace test_rank_collector {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const std::string kPart = "max_abs/weight_grad/microbatch-0";

using Ranks = std::vector<int>;
/// What a rank writes at a step.
using Change = std::function<void(int rank, log::StepScalars& step)>;

log::StepScalars ordinary(int rank, int step) {
  log::StepScalars s;
  s.step = step;
  // Every rank and step differs a little from the others.
  const double noise = 0.3 * std::sin(12.9898 * rank + 78.233 * step);
  s.loss = 2.5 * std::exp2(noise);
  s.loss_scale = 1024;
  s.found_inf = false;
  s.max_abs_weight_grad = 0.5;
  s.max_abs_activation_grad = 0.25 * std::exp2(noise);
  s.more[kPart] = 3 * std::exp2(noise);
  return s;
}

std::vector<ranks::RankStudy> studied(const Ranks& numbers, int steps, const Change& change,
                                      log::Manifest manifest = {}) {
  const TempFolder folder;
  manifest.world_size = static_cast<int>(numbers.size());
  for (const int rank : numbers) {
    manifest.rank = rank;
    log::RunLogWriter writer(folder / fmt::format("run/rank-{:04}", rank), manifest);
    for (int step = 0; step < steps; ++step) {
      log::StepScalars s = ordinary(rank, step);
      if (change) change(rank, s);
      writer.write(s);
    }
    writer.write(record_of("weight_grad/w", 0, {0.5F}));
  }
  return analyze({folder / "run"}, {}, {}, {}, {}).ranks;
}

const ranks::RankComparison& of(const ranks::RankStudy& study, log::Role role) {
  return *std::ranges::find(study.compared, role, &ranks::RankComparison::role);
}

TEST_CASE("a clean run of several ranks gets no alarm", "[table]") {
  const auto found = studied({0, 1, 2, 3, 4, 5, 6, 7}, 40, {});
  REQUIRE(found.size() == 1);
  CHECK(found[0].ranks == 8);
  CHECK_FALSE(found[0].differ());
  CHECK(found[0].worst() == nullptr);
  // Local gradients where there are some, in place of the sum.
  std::vector<log::Role> roles;
  for (const auto& all : found[0].compared) roles.push_back(all.role);
  CHECK(roles ==
        std::vector{log::Role::local_weight_grad, log::Role::activation_grad, log::Role::loss});
  CHECK(of(found[0], log::Role::loss).ranks.size() == 8);
}

TEST_CASE("one rank overflows where the loss scale grows: no alarm", "[table]") {
  const auto found = studied({0, 1, 2, 3, 4, 5, 6, 7}, 60, [](int rank, log::StepScalars& s) {
    // At 16384 gradients of 4 overflow: the one rank that has them is the first.
    s.loss_scale = s.step % 20 == 19 ? 16384 : 8192;
    if (s.step % 20 != 19 || rank != 3) return;
    s.more[kPart] = s.step == 39 ? kNan : kInf;
    s.found_inf = true;
    s.max_abs_weight_grad = s.max_abs_activation_grad = kInf;
  });
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].differ());
}

TEST_CASE("a rank whose gradients overflow at many steps differs", "[table]") {
  const auto with = [](int first) {
    return studied({0, 1, 2, 3}, 60, [first](int rank, log::StepScalars& s) {
      s.loss_scale = 16384;
      if (rank == 2 && s.step >= first) s.more[kPart] = kNan;
    });
  };
  CHECK_FALSE(with(57).front().differ());  // 5 % are no more than 5 %
  const auto found = with(56);
  const ranks::RankComparison* const all = found.front().worst();
  REQUIRE(all != nullptr);
  CHECK(all->ranks[all->worst.front()].rank == 2);
  CHECK(all->ranks[2].overflows);
  CHECK(all->ranks[2].nonfinite_steps == 4);
  CHECK_FALSE(all->ranks[2].nonfinite);  // it may be an overflow of FP16
}

TEST_CASE("NaN on one rank is its own", "[table]") {
  const auto found = studied({0, 1, 2, 3}, 20, [](int rank, log::StepScalars& s) {
    s.loss_scale.reset();
    if (rank == 2 && s.step >= 12) s.loss = kNan;
    if (s.step >= 13) s.loss = kNan;
  });
  REQUIRE(found.size() == 1);
  const ranks::RankComparison* const all = found[0].worst();
  REQUIRE(all != nullptr);
  CHECK(all->role == log::Role::loss);
  REQUIRE(all->worst.size() == 1);
  const ranks::RankValues& rank = all->ranks[all->worst[0]];
  CHECK(rank.rank == 2);
  CHECK(rank.nonfinite->step == 12);
  CHECK(rank.nonfinite->nan);
}

TEST_CASE("a rank is called by its number where another is missing", "[table]") {
  const auto found = studied({0, 1, 4, 7, 9}, 20, [](int rank, log::StepScalars& s) {
    if (rank == 7 && s.step == 15) s.more[kPart] = 3 * 0x1p6;
  });
  REQUIRE(found.size() == 1);
  const ranks::RankComparison* const all = found[0].worst();
  REQUIRE(all != nullptr);
  CHECK(all->role == log::Role::local_weight_grad);
  REQUIRE(all->worst.size() == 1);
  const ranks::RankValues& rank = all->ranks[all->worst[0]];
  CHECK(rank.rank == 7);
  CHECK(rank.max_abs == 192);
  CHECK(rank.max_step == 15);
  CHECK(rank.peak_step == 15);
  CHECK(*rank.peak > 5);
  CHECK(*rank.skew > 5);
}

TEST_CASE("values that carry the loss scale are compared without it", "[table]") {
  log::Manifest manifest;
  manifest.gradients = log::ScaleState::scaled;
  const auto found = studied(
      {0, 1, 2, 3}, 20,
      [](int rank, log::StepScalars& s) {
        s.loss_scale = rank == 1 ? 0x1p20 : 1024;
        s.more[kPart] *= *s.loss_scale;
      },
      manifest);
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].differ());
}

TEST_CASE("of a long run several steps are one column", "[table]") {
  const auto found = studied({0, 1, 2}, 1000, [](int rank, log::StepScalars& s) {
    if (rank == 1 && s.step == 777) s.more[kPart] = 3 * 0x1p9;
  });
  REQUIRE(found.size() == 1);
  const ranks::RankComparison& all = of(found[0], log::Role::local_weight_grad);
  CHECK(all.stride == 4);
  REQUIRE(all.worst.size() == 1);
  CHECK(all.ranks[all.worst[0]].steps == 1000);
  CHECK(all.ranks[all.worst[0]].max_step == 777);
  CHECK(all.ranks[all.worst[0]].peak_step == 776);
}

TEST_CASE("weight gradients that ranks share out are not compared", "[table]") {
  log::Manifest manifest;
  manifest.sharded = {log::Role::weight_grad};
  const auto found = studied(
      {0, 1, 2, 3}, 20,
      [](int rank, log::StepScalars& s) {
        s.more = {};
        if (rank == 3) s.max_abs_weight_grad = 4096;
      },
      manifest);
  REQUIRE(found.size() == 1);
  CHECK(of(found[0], log::Role::weight_grad).parts);
  CHECK_FALSE(found[0].differ());
}

TEST_CASE("one rank alone is not compared", "[table]") { CHECK(studied({0}, 20, {}).empty()); }

}  // namespace test_rank_collector
