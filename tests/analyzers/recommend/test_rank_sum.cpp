// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "analyzers/logs.hpp"
#include "analyzers/recommend/parts.hpp"
#include "catch.hpp"
#include "halfscope/number/convert.hpp"

namespace test_rank_sum {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

std::filesystem::path write_ranks(const TempFolder& folder, const std::vector<Values>& ranks,
                                  int world_size) {
  log::Manifest manifest;
  manifest.world_size = world_size;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    manifest.rank = static_cast<int>(rank);
    log::RunLogWriter writer(folder / ("run/rank-000" + std::to_string(rank)), manifest);
    writer.write(record_of("weight_grad/w", 0, ranks[rank]));
    writer.write(record_of("weight/w", 0, {1.0f + static_cast<float>(rank)}));
  }
  return folder / "run";
}

std::optional<recommend::RankSum> sum_of(const std::vector<Values>& ranks, int world_size) {
  const TempFolder folder;
  const underflow::Analysis analysis =
      underflow::analyze({write_ranks(folder, ranks, world_size)}, {}, {});
  return recommend::rank_sum(analysis, recommend::recommend({analysis, {}, {}}), {});
}

/// Values over many binades, different from rank to rank.
std::vector<Values> three_ranks() {
  std::vector<Values> ranks(3);
  for (int i = 0; i < 3000; ++i) {
    ranks[static_cast<std::size_t>(i % 3)].push_back(
        static_cast<float>(std::exp2(-45 + 0.0153 * i)));
  }
  return ranks;
}

TEST_CASE("dividing before the sum flushes what rounding each rank says", "[oracle]") {
  const std::vector<Values> ranks = three_ranks();
  const TempFolder folder;
  const underflow::Analysis analysis = underflow::analyze({write_ranks(folder, ranks, 3)}, {}, {});
  const recommend::Recommendation advice = recommend::recommend({analysis, {}, {}});
  const auto sum = recommend::rank_sum(analysis, advice, {});
  REQUIRE(sum);
  std::uint64_t alone = 0, before = 0;
  for (const Values& rank : ranks) {
    for (const float x : rank) {
      const double scaled = std::ldexp(double{x}, *advice.static_log2);
      alone += from_double(kBinary16, scaled).bits == 0;
      before += from_double(kBinary16, scaled / 4).bits == 0;  // 3 ranks: divided by 4
    }
  }
  CHECK(sum->ranks == 3);
  CHECK(sum->of == Interval(3000));
  CHECK(sum->flushed_alone == Interval(alone));
  CHECK(sum->flushed_before == Interval(before));
  CHECK(alone < before);
}

TEST_CASE("dividing after: no order of additions overflows at the highest scale", "[oracle]") {
  const std::vector<Values> ranks = {{1.0f, 0x1p-20f}, {1.5f}, {1.25f, -3.75f}, {0.875f}};
  const auto sum = sum_of(ranks, 4);
  REQUIRE(sum);
  // 1 + 1.5 + 3.75 + 0.875 = 7.125: 2^13 times it is 58368, 2^14 times it overflows.
  CHECK(sum->highest_after_log2 == 13);
  // The largest of any rank, 3.75, allows 2^13: one binade of headroom below 2^15.99.
  const double bound = 7.125 * std::pow(1 + 0x1p-11, 3);
  CHECK(sum->headroom_after == Approx(std::log2(65520 / bound) - 13));
}

TEST_CASE("rounded sums of many ranks may exceed the sum of magnitudes", "[table]") {
  // Two ranks of just under half of 65520: their sum does not overflow, their rounded sum may.
  const auto sum = sum_of({{32759.9f}, {32760.0f}}, 2);
  REQUIRE(sum);
  CHECK(sum->highest_after_log2 == -1);
}

TEST_CASE("without ranks that differ there is nothing to say", "[table]") {
  const Values same = {1.0f, 0.5f};
  CHECK_FALSE(sum_of({same, same}, 2));          // summed before they were recorded
  CHECK_FALSE(sum_of({same, {2.0f, 0.5f}}, 3));  // a rank is missing
  CHECK(sum_of({same, {2.0f, 0.5f}}, 2));
  const TempFolder folder;
  const underflow::Analysis one =
      underflow::analyze({write_tensors(folder, {{"weight_grad/w", same}})}, {}, {});
  CHECK_FALSE(recommend::rank_sum(one, recommend::recommend({one, {}, {}}), {}));
}

TEST_CASE("a scale must hold for every rank, whichever is counted", "[advice]") {
  const TempFolder folder;
  const underflow::Analysis analysis =
      underflow::analyze({write_ranks(folder, {{1.0f}, {1e4f}}, 2)}, {}, {});
  const recommend::Recommendation advice = recommend::recommend({analysis, {}, {}});
  CHECK(advice.static_log2 == 1);  // 1e4 * 2^2 < 65520 and one binade spared
  REQUIRE(advice.limited_by);
  CHECK(advice.limited_by->max_abs == 1e4);

  const float infinity = std::numeric_limits<float>::infinity();
  const TempFolder other;
  const underflow::Analysis broken =
      underflow::analyze({write_ranks(other, {{1.0f}, {infinity}}, 2)}, {}, {});
  CHECK(recommend::recommend({broken, {}, {}}).nonfinite_steps == std::vector<std::int64_t>{0});
}

}  // namespace test_rank_sum
