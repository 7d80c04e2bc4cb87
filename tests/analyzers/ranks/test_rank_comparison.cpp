// SPDX-License-Identifier: Apache-2.0
#include "analyzers/ranks/rank_comparison.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "catch.hpp"

namespace test_rank_comparison {

using namespace halfscope;
using namespace halfscope::analyzers::ranks;

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Numbers in (0, 1), the same on every machine (L'Ecuyer's multiplicative generator of 63 bits).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(2 * seed + 1) {}
  double next() {
    state_ = 3512401965023503517U * state_ % (std::uint64_t{1} << 63);
    return (static_cast<double>(state_ >> 11) + 0.5) * 0x1p-52;
  }
  /// Two-sided, with the tail exp(-x).
  double laplace() {
    const double x = -std::log(next());
    return next() < 0.5 ? x : -x;
  }

 private:
  std::uint64_t state_;
};

/// Ranks by steps of log2 magnitudes; NaN: the rank does not have the step.
using Grid = std::vector<std::vector<double>>;

Grid equal_ranks(std::size_t ranks, std::size_t steps, double log2 = 1) {
  return Grid(ranks, std::vector<double>(steps, log2));
}

RankComparison compared(const Grid& grid, bool parts = false) {
  std::vector<RankRow> rows;
  for (std::size_t rank = 0; rank < grid.size(); ++rank) {
    RankRow row;
    row.values.rank = rank;
    ColumnKeys keys;
    for (std::size_t step = 0; step < grid[rank].size(); ++step) {
      const double log2 = grid[rank][step];
      if (std::isnan(log2)) continue;
      keys.push_back(static_cast<std::int64_t>(step));
      row.log2.push_back(static_cast<float>(log2));
      if (log2 == kInf && !row.values.nonfinite) row.values.nonfinite = {keys.back(), false};
    }
    row.keys = std::make_shared<const ColumnKeys>(std::move(keys));
    rows.push_back(std::move(row));
  }
  return *compare(log::Role::weight_grad, std::move(rows), 1, parts);
}

std::vector<std::uint64_t> worst(const RankComparison& all) {
  std::vector<std::uint64_t> ranks;
  for (const std::size_t i : all.worst) ranks.push_back(all.ranks[i].rank);
  return ranks;
}

using Ranks = std::vector<std::uint64_t>;

TEST_CASE("the limit is what the largest of all draws exceeds once in 1000 runs", "[table]") {
  // So many ranks that their median is exact: one draw exceeds ln 2 in half of them, and the
  // largest of 2^30 exceeds ln(1000 2^30) in one of 1000 runs.
  const double many = std::log(1000.0) + 30 * std::log(2.0);
  CHECK(chance_limit(1, std::size_t{1} << 30, 1) == Approx(many / std::log(2.0)));
  CHECK(chance_limit(0.5, std::size_t{1} << 30, 1) == Approx(0.5 * many / std::log(2.0)));
  CHECK(chance_limit(0, 512, 200) == 0);
  // Two ranks: the lower one of their largest values is that low in one of 100 runs.
  CHECK(chance_limit(1, 2, 1) == Approx(std::log(2000.0) / -std::log1p(-0.005)));
}

TEST_CASE("ranks of one heavy-tailed distribution hardly ever differ", "[oracle]") {
  std::size_t alarms = 0, runs = 0;
  for (const auto& [ranks, steps] : {std::pair{2U, 12U}, {3U, 8U}, {16U, 1U}, {64U, 40U}}) {
    for (std::uint64_t seed = 0; seed < 250; ++seed, ++runs) {
      Random random(seed);
      Grid grid = equal_ranks(ranks, steps);
      for (std::vector<double>& rank : grid) {
        for (double& x : rank) x = random.laplace();  // one binade in e-folds: most are 4 times off
      }
      alarms += compared(grid).differ();
    }
  }
  INFO(alarms << " of " << runs);
  CHECK(alarms <= 5);
}

TEST_CASE("two binades are no difference, more are", "[table]") {
  Grid grid = equal_ranks(8, 20);
  grid[3][7] = 3;
  CHECK_FALSE(compared(grid).differ());
  grid[3][7] = 3.01;
  const RankComparison all = compared(grid);
  CHECK(worst(all) == Ranks{3});
  CHECK(all.ranks[3].peaks);
  CHECK_FALSE(all.ranks[3].departs);
  CHECK(*all.ranks[3].peak == Approx(2.01));
  CHECK(all.ranks[3].peak_step == 7);
}

TEST_CASE("since when a rank differs", "[table]") {
  Grid grid = equal_ranks(8, 20);
  grid[3][2] = 5;  // once
  CHECK(compared(grid).ranks[3].since == 2);
  for (std::size_t step = 13; step < 20; ++step) grid[3][step] = 4;  // and from here on
  CHECK(compared(grid).ranks[3].since == 13);
  grid[3][16] = 1;
  CHECK(compared(grid).ranks[3].since == 13);
  for (std::size_t step = 4; step < 20; ++step) grid[6][step] = -4;
  const RankComparison all = compared(grid);
  CHECK(all.ranks[6].departs);
  CHECK(all.ranks[6].since == 4);
  CHECK_FALSE(all.ranks[0].since);
}

TEST_CASE("a step that stands out among restless ranks is none", "[table]") {
  Random random(1);
  Grid grid = equal_ranks(16, 50);
  for (auto& rank : grid) {
    for (double& x : rank) x = random.laplace();
  }
  grid[5][20] = 4;
  CHECK_FALSE(compared(grid).differ());
  grid[5][20] = 40;
  CHECK(worst(compared(grid)) == Ranks{5});
}

TEST_CASE("a rank that lies apart at most steps differs where its steps do not stand out",
          "[table]") {
  Random random(2);
  Grid grid = equal_ranks(64, 100);
  for (auto& rank : grid) {
    for (double& x : rank) x = random.laplace();
  }
  for (double& x : grid[9]) x -= 3.5;
  const RankComparison all = compared(grid);
  CHECK(worst(all) == Ranks{9});
  CHECK(all.ranks[9].departs);
  CHECK(*all.ranks[9].middle == Approx(-3.5).margin(0.5));
}

TEST_CASE("a node of ill ranks hides none of them", "[table]") {
  Grid grid = equal_ranks(32, 20);
  for (std::size_t rank = 8; rank < 16; ++rank) grid[rank].assign(20, 7);
  grid[11].assign(20, 9);
  const RankComparison all = compared(grid);
  CHECK(all.worst.size() == 8);
  CHECK(worst(all).front() == 11);
}

TEST_CASE("the rank that is first with an infinity differs", "[table]") {
  Grid grid = equal_ranks(8, 20);
  for (auto& rank : grid) std::fill(rank.begin() + 11, rank.end(), kInf);
  CHECK_FALSE(compared(grid).differ());  // all at one step
  grid[6][10] = kInf;
  const RankComparison all = compared(grid);
  CHECK(worst(all) == Ranks{6});
  CHECK(all.ranks[6].is_nonfinite);
  CHECK(all.ranks[6].nonfinite->step == 10);
}

TEST_CASE("a rank with fewer steps is compared where it has some", "[table]") {
  Grid grid = equal_ranks(6, 30);
  for (std::size_t step = 0; step < 30; ++step) {
    for (auto& rank : grid) rank[step] = -static_cast<double>(step);  // all fall
  }
  grid[2].resize(5);
  grid[4].erase(grid[4].begin(), grid[4].end());
  CHECK_FALSE(compared(grid).differ());
  grid[2][4] += 3;
  CHECK(worst(compared(grid)) == Ranks{2});
}

TEST_CASE("few values show no spread", "[table]") {
  Grid grid = equal_ranks(2, 11);
  grid[1].assign(11, 9);
  CHECK_FALSE(compared(grid).differ());
  grid = equal_ranks(2, 12);
  grid[1].assign(12, 9);
  CHECK(worst(compared(grid)) == Ranks{1});
  grid = equal_ranks(2, 3);
  grid[1][2] = kInf;  // not one of 2 ranks: which one is ill is open, but an infinity is none
  CHECK(compared(grid).ranks[1].nonfinite);
}

TEST_CASE("zeros lie below all, and above nothing", "[table]") {
  Grid grid = equal_ranks(8, 20);
  grid[5].assign(20, -kInf);
  CHECK(worst(compared(grid)) == Ranks{5});
  grid = equal_ranks(8, 20, -kInf);
  grid[5].assign(20, 3);
  CHECK_FALSE(compared(grid).differ());
}

TEST_CASE("ranks that hold other tensors are not compared", "[table]") {
  std::vector<RankRow> rows(8);
  for (std::size_t i = 0; i < 8; ++i) {
    rows[i].values.rank = i;
    rows[i].names = i < 2 ? 7 : 9;
    rows[i].keys = std::make_shared<const ColumnKeys>(ColumnKeys{0, 1, 2, 3, 4, 5});
    rows[i].log2.assign(6, i < 2 ? 9.0F : 1.0F);
  }
  auto same = rows;
  for (RankRow& row : same) row.names = 9;
  CHECK_FALSE(compare(log::Role::weight_grad, std::move(rows), 1, false)->differ());
  CHECK(worst(*compare(log::Role::weight_grad, std::move(same), 1, false)) == Ranks{0, 1});
}

TEST_CASE("parts of a tensor have no common magnitude", "[table]") {
  Grid grid = equal_ranks(8, 20);
  grid[3].assign(20, 12);
  CHECK_FALSE(compared(grid, true).differ());
  grid[3][4] = kInf;
  CHECK(worst(compared(grid, true)) == Ranks{3});
}

TEST_CASE("a map of many ranks keeps what stands out", "[table]") {
  Grid grid = equal_ranks(8192, 150);
  grid[317][42] = 9;
  const RankComparison all = compared(grid);
  CHECK(worst(all) == Ranks{317});
  CHECK(all.map.rows.size() == kMapRows);
  CHECK(all.map.steps.size() == 75);
  CHECK(all.map.last_step == 149);
  const RankMap::Row& row = all.map.rows[317 / 128];
  CHECK(row.first == 256);
  CHECK(row.last == 383);
  CHECK(row.cells[21] == 8);
  CHECK(row.cells[20] == 0);
}

TEST_CASE("a rank that loses far more to underflow differs", "[table]") {
  const auto with_shares = [](const std::vector<std::uint64_t>& flushed) {
    std::vector<RankRow> rows(flushed.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].values.rank = i;
      rows[i].values.flushed = flushed[i];
      rows[i].values.nonzero = 10000;
      rows[i].keys = std::make_shared<const ColumnKeys>(ColumnKeys{0, 1, 2});
      rows[i].log2.assign(3, 1.0F);
    }
    return *compare(log::Role::weight_grad, std::move(rows), 1, false);
  };
  CHECK_FALSE(with_shares({100, 100, 100, 100, 400}).differ());
  const RankComparison all = with_shares({100, 100, 100, 100, 401});
  CHECK(worst(all) == Ranks{4});
  CHECK(all.ranks[4].underflows);
  CHECK(*all.median_underflow == 0.01);
  CHECK_FALSE(with_shares({0, 0, 0, 0, 40}).differ());  // below 4 times a thousandth
}

}  // namespace test_rank_comparison
