// SPDX-License-Identifier: Apache-2.0
// Speed of the pass over weights and updates, as ratios to reading both, and of the what-ifs.
//
//   bench_update [--json FILE] [--elements N]      N pairs of binary32, default 2^26 (512 MiB)
//
// The updates follow the weights in memory. With the default N their distance is 2^28 bytes, the
// worst case for AMD's first-level cache (update_pass.hpp). The rows "odd distance" use the same
// memory with updates 4,352 bytes further.
#include <cmath>
#include <random>

#include "bench/bench.hpp"
#include "bench/update_loops.hpp"
#include "halfscope/table/update/update_table.hpp"
#include "halfscope/table/update/update_what_if.hpp"

namespace {

using namespace halfscope;

volatile std::uint64_t sink = 0;  // prevents optimising the work away

struct Pairs {
  std::vector<float> memory;  // the weights, followed by the same number of updates
  std::size_t count;

  const float* weights() const { return memory.data(); }
  const float* updates() const { return memory.data() + count; }
  TensorView weight_view(std::size_t n) const { return view_of(std::span(weights(), n)); }
  TensorView update_view(std::size_t n, std::size_t first = 0) const {
    return view_of(std::span(updates() + first, n));
  }
};

/// Returns normal weights, and log-normal updates of both signs: log2 has mean -15 and standard
/// deviation 3; 1 % are zeros.
Pairs pairs(std::size_t n) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> weight(0, 0.05), log2_update(-15, 3);
  std::vector<float> some_weights(std::size_t{1} << 20), some_updates(some_weights.size());
  for (std::size_t i = 0; i < some_weights.size(); ++i) {
    some_weights[i] = static_cast<float>(weight(random));
    const double sign = random() % 2 == 0 ? 1 : -1;
    const double update = sign * std::exp2(log2_update(random));
    some_updates[i] = random() % 100 == 0 ? 0.0f : static_cast<float>(update);
  }
  Pairs pairs{std::vector<float>(2 * n), n};
  for (std::size_t i = 0; i < n; ++i) {
    pairs.memory[i] = some_weights[(i * 0x9E3779B97F4A7C15u) >> 44];
    pairs.memory[n + i] = some_updates[(i * 0xC2B2AE3D27D4EB4Fu) >> 44];
  }
  return pairs;
}

void bench_pass(const Pairs& p, int threads, std::vector<bench::Result>& results) {
  constexpr std::size_t kOdd = 1088;  // elements
  const std::size_t n = p.count;
  const double bytes = 8.0 * static_cast<double>(n);
  const double odd_bytes = bytes - 8.0 * kOdd;
  const auto swamped = [&](bool distributions, std::size_t further = 0) {
    sink = count_updates(p.weight_view(n - further), p.update_view(n - further, further),
                         {.distributions = distributions, .threads = threads})
               .counts.half.swamped;
  };
  std::vector<bench::Way> ways = {
      {"read weights and updates", bytes,
       [&] { sink = bench::read_all(std::as_bytes(std::span(p.memory)), threads); }},
      {"swamped updates: two arithmetics and the rule", bytes, [&] { swamped(false); }},
      {"swamped updates, with cells, ratios and errors", bytes, [&] { swamped(true); }},
      {"the same counts, odd distance", odd_bytes, [&] { swamped(false, kOdd); }},
      {"the same with cells, ratios and errors, odd distance", odd_bytes,
       [&] { swamped(true, kOdd); }}};
  if (threads == 1) {
    ways.push_back({"plain C, F16C: one count", bytes,
                    [&] { sink = update_loops::lost(p.weights(), p.updates(), n); }});
    ways.push_back({"plain C, F16C: one count, odd distance", odd_bytes,
                    [&] { sink = update_loops::lost(p.weights(), p.updates() + kOdd, n - kOdd); }});
  }
  bench::race(ways, threads, results);
}

/// Measures the passes that are slower than memory, in nanoseconds per pair.
void bench_slow(const Pairs& p, std::vector<bench::Result>& results) {
  const std::size_t n = std::min(p.count, std::size_t{1} << 18);
  const auto nanoseconds = [&](const std::string& name, const std::function<void()>& work) {
    const double best = std::min(bench::thread_seconds(work), bench::thread_seconds(work));
    results.push_back({name, 1, best * 1e9 / static_cast<double>(n), "ns/pair"});
  };
  nanoseconds("what-ifs of updates, all", [&] {
    sink = what_if(p.weight_view(n), p.update_view(n), {.threads = 1}).master_never;
  });
  nanoseconds("swamped updates of SGD, with cells, ratios and errors", [&] {
    sink = count_sgd_updates(p.weight_view(n), p.update_view(n), 0.1, 1, {.threads = 1})
               .counts.half.swamped;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given = bench::arguments(argc, argv, "--elements", std::size_t{1} << 26);
  const Pairs p = pairs(std::max(given.number / 64 * 64, std::size_t{1} << 12));
  std::vector<bench::Result> results;
  for (const int threads : {1, 2}) bench_pass(p, threads, results);
  bench_slow(p, results);
  bench::report(results, given.json);
  return 0;
}
