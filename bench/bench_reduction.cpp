// SPDX-License-Identifier: Apache-2.0
// Speed of reductions in additions per second, compared with the array operation add.
//
//   bench_reduction [--json FILE] [--elements N]     N elements per rank (default 2^21); 8 ranks
#include <random>

#include "bench/bench.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/reduction/reduce.hpp"

namespace {

using namespace halfscope;

volatile std::uint64_t sink = 0;  // prevents optimising the work away

constexpr std::size_t kRanks = 8;

using Ranks = std::vector<std::vector<float>>;

/// Returns each rank's gradients: every element has a mean, with normal noise of the same size.
Ranks gradients(std::size_t n) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> means(n);
  for (float& x : means) x = normal(random);
  Ranks ranks(kRanks, means);
  for (auto& rank : ranks) {
    for (float& x : rank) x += normal(random);
  }
  return ranks;
}

/// Adds the best of five runs, in millions of additions per second.
void measure(const std::string& name, double additions, int threads,
             const std::function<void()>& work, std::vector<bench::Result>& results) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    best = std::min(best, threads == 1 ? bench::thread_seconds(work) : bench::wall_seconds(work));
  }
  results.push_back({name, threads, 1e-6 * additions / best, "M/s"});
}

void bench_add(Format f, const std::string& name, const Ranks& ranks, int threads,
               std::vector<bench::Result>& results) {
  const std::size_t n = ranks[0].size();
  std::vector<std::uint16_t> a(n), b(n), out(n);
  convert(f, ranks[0], a);
  convert(f, ranks[1], b);
  measure(
      "arrays add, " + name, static_cast<double>(n), threads,
      [&] { sink = add(f, a, b, out, {.threads = threads}).inexact ? 1 : 0; }, results);
}

void bench_reduce(Format f, const std::string& name, reduction::Order order, const Ranks& ranks,
                  int threads, std::vector<bench::Result>& results) {
  const std::vector<std::span<const float>> addends(ranks.begin(), ranks.end());
  const double additions = static_cast<double>((kRanks - 1) * ranks[0].size());
  const std::string title = "reduce, " + name + ", " + std::string(name_of(order));
  measure(
      title, additions, threads,
      [&] { sink = reduction::reduce(f, addends, {.order = order, .threads = threads}).lost; },
      results);
}

void bench_long(Format f, const std::string& name, const Ranks& ranks,
                std::vector<bench::Result>& results) {
  const std::span<const float> addends = ranks[0];
  measure(
      "one long sum, " + name, static_cast<double>(addends.size()), 1,
      [&] { sink = reduction::sum(f, addends).facts.lost; }, results);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given = bench::arguments(argc, argv, "--elements", std::size_t{1} << 21);
  const Ranks ranks = gradients(std::max(given.number, std::size_t{1} << 10));
  std::vector<bench::Result> results;
  for (const int threads : {1, 2}) {
    for (const std::string name : {"binary16", "bfloat16"}) {
      bench_add(find_format(name)->format, name, ranks, threads, results);
    }
    for (const std::string name : {"binary16", "bfloat16", "binary32"}) {
      const Format f = find_format(name)->format;
      for (const auto& row : reduction::kOrders) {
        bench_reduce(f, name, row.order, ranks, threads, results);
      }
    }
  }
  for (const std::string name : {"bfloat16", "binary32"}) {
    bench_long(find_format(name)->format, name, ranks, results);
  }
  bench::report(results, given.json);
  return 0;
}
