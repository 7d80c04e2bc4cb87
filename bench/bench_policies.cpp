// SPDX-License-Identifier: Apache-2.0
// Steps per second of replayed loss-scaling policies: each alone on one thread, then all together
// on all cores. Magnitudes are log-normal with a trend, rare spikes and a few NaN steps.
//
//   bench_policies [--json FILE] [--steps N]
#include <tbb/info.h>

#include <cmath>
#include <random>

#include "analyzers/replay/replay.hpp"
#include "bench/bench.hpp"

namespace {

using namespace halfscope;

analyzers::replay::StepSeries series_of(std::size_t steps) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 1);
  analyzers::replay::StepSeries series;
  series.log = "synthetic";
  series.from_magnitudes = true;
  for (std::size_t i = 0; i < steps; ++i) {
    const double trend = -4 * static_cast<double>(i) / static_cast<double>(steps);
    double magnitude = std::exp2(-6 + trend + noise(random));
    if (random() % 1000 == 0) magnitude *= 1024;
    if (random() % 10000 == 0) magnitude = NAN;
    series.steps.push_back(static_cast<std::int64_t>(i));
    series.seen.push_back({magnitude, 0});
  }
  return series;
}

template <class Work>
double best_of_three(const Work& work) {
  double best = 1e9;
  for (int run = 0; run < 3; ++run) best = std::min(best, bench::wall_seconds(work));
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given = bench::arguments(argc, argv, "--steps", 1000000);
  const analyzers::replay::StepSeries series = series_of(given.number);
  std::vector<bench::Result> results;
  for (const char* const name :
       {"torch", "deepspeed", "fairseq", "nnabla", "chainer", "os2s-logmax", "te-delayed"}) {
    const policy::Policy policy = policy::make(name);
    std::size_t steps = 0;  // fewer if an error ends the trace
    const double taken =
        best_of_three([&] { steps = analyzers::replay::replay(policy, series).length; });
    results.push_back({fmt::format("replay of {}", name), 1,
                       static_cast<double>(steps) / 1e6 / taken, "Msteps/s"});
  }
  const std::vector<policy::Policy> all = policy::all();
  const double taken = best_of_three([&] { analyzers::replay::replay(all, series); });
  results.push_back({fmt::format("replay of all {} policies, {} steps", all.size(), given.number),
                     tbb::info::default_concurrency(), taken, "s"});
  bench::report(results, given.json);
  return 0;
}
