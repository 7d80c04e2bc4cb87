// SPDX-License-Identifier: Apache-2.0
// Steps per second of the simulator's networks in every precision mode: forward, backward and SGD,
// without loss scaling and run log. bench_sim.py measures the same networks in PyTorch.
//
//   bench_sim [--json FILE] [--rounds N]
#include <tbb/info.h>

#include "bench/bench.hpp"
#include "sim/autograd/parameters.hpp"
#include "sim/networks/network.hpp"

namespace {

using namespace halfscope;
using namespace halfscope::sim::autograd;
using namespace halfscope::sim::backend;
using namespace halfscope::sim::data;
using namespace halfscope::sim::networks;

struct Mode {
  std::string name;
  Precision precision;
  Accumulation accumulation = Accumulation::fp32;
};

std::vector<Mode> modes() {
  std::vector<Mode> all;
  for (const Precision& row : kPrecisions) all.push_back({std::string(row.name), row});
  all.push_back({"mixed, sums in fp16", kPrecisions[2], Accumulation::fp16});
  return all;
}

/// Training of one network in one precision mode, always with the same batch.
class Training {
 public:
  Training(const Network& network, const Data& data, const Mode& mode, int threads)
      : network_(network),
        data_(data),
        batch_(data.batch(0, network.batch)),
        tensors_(mode.precision.tensors),
        backend_(make_cpu_backend(mode.accumulation, threads)),
        parameters_(*backend_, mode.precision, 1) {}

  void step() {
    Tape tape(*backend_, parameters_, true);
    network_.forward(tape, *backend_, batch_, tensors_, data_);
    tape.backward(1, false);
    for (Parameter* const parameter : parameters_.trained()) {
      Tensor none;
      backend_->update({.learning_rate = 0.001}, parameter->gradient, 1, parameter->updated(),
                       parameter->state, none);
      if (parameter->master) backend_->copy(parameter->master, parameter->weight);
    }
  }

 private:
  const Network& network_;
  const Data& data_;
  Batch batch_;
  Dtype tensors_;
  std::unique_ptr<Backend> backend_;
  Parameters parameters_;
};

/// Returns the best of several rounds of some tenths of a second, after a step for warming up.
double steps_a_second(Training& training, int threads, std::size_t rounds) {
  training.step();
  const double one = bench::wall_seconds([&] { training.step(); });
  const int steps = std::max(1, static_cast<int>(0.1 / one));
  const auto work = [&] {
    for (int i = 0; i < steps; ++i) training.step();
  };
  double best = 1e9;
  for (std::size_t round = 0; round < rounds; ++round) {
    best = std::min(best, threads == 1 ? bench::thread_seconds(work) : bench::wall_seconds(work));
  }
  return steps / best;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given = bench::arguments(argc, argv, "--rounds", 3);
  std::vector<bench::Result> results;
  std::vector<int> counts = {1};
  if (tbb::info::default_concurrency() > 1) counts.push_back(tbb::info::default_concurrency());
  for (const Network& network : networks()) {
    if (network.name == "tinyssd-all-anchors") continue;  // equals tinyssd except for a divisor
    if (network.name == "resnet50") continue;  // for GPUs; on a CPU, a step needs minutes
    // Lenet uses generated images: its default data need scikit-learn, which may not be installed.
    const auto data = open_data(network.name == "lenet" ? "images" : std::string(network.data), 1);
    for (const int threads : counts) {
      for (const Mode& mode : modes()) {
        Training training(network, *data, mode, threads);
        results.push_back({fmt::format("{}, batch {}, {}", network.name, network.batch, mode.name),
                           threads, steps_a_second(training, threads, given.number), "steps/s"});
      }
    }
  }
  bench::report(results, given.json);
  return 0;
}
