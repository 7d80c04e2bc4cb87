// SPDX-License-Identifier: Apache-2.0
// Speed of finding the weights whose copies change, as ratios to reading both tensors, on one
// thread.
//
//   bench_weights [--json FILE] [--elements N]      N weights of binary32, default 2^28 (2 GiB in
//   all)
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>

#include "analyzers/weights/moved.hpp"
#include "bench/bench.hpp"
#include "halfscope/log/cut_maps.hpp"
#include "halfscope/log/safetensors.hpp"
#include "halfscope/optimizer/changed.hpp"
#include "tbb/global_control.h"

namespace {

using namespace halfscope;

volatile std::uint64_t sink = 0;  // prevents optimising the work away

/// Writes a checkpoint of normal weights, or the same weights after updates of log-normal size.
void write_checkpoint(const std::filesystem::path& path, std::size_t n, bool after) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> weight(0, 0.05), log2_update(-20, 2);
  std::vector<float> some(std::size_t{1} << 20), values(n);
  for (float& x : some) {
    const double w = weight(random), sign = random() % 2 == 0 ? 1 : -1;
    const double update = sign * std::exp2(log2_update(random));
    x = static_cast<float>(after ? w + update : w);
  }
  for (std::size_t i = 0; i < n; ++i) values[i] = some[(i * 0x9E3779B97F4A7C15u) >> 44];
  log::write_safetensors(path, {{"w", {n}, view_of(std::span<const float>(values))}});
}

/// Returns the private memory of this process, in MB.
double private_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stod(line.substr(8)) / 1e3;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given = bench::arguments(argc, argv, "--elements", std::size_t{1} << 28);
  log::end_where_maps_are_cut();
  const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("bench_weights_{}", getpid());
  std::filesystem::create_directory(folder);
  const auto path = [&](const char* name) { return folder / name; };
  write_checkpoint(path("a.safetensors"), given.number, false);
  write_checkpoint(path("b.safetensors"), given.number, true);
  const double bytes = 8.0 * static_cast<double>(given.number);
  const auto open = [&](const auto& use) {
    const log::Safetensors a(path("a.safetensors")), b(path("b.safetensors"));
    use(a.tensor("w")->view, b.tensor("w")->view);
  };
  double most = 0;
  const auto found = [&](bool stalls) {
    const auto tell = [&](auto, auto) { most = std::max(most, private_megabytes()); };
    sink =
        analyzers::weights::moved_weights({path("a.safetensors"), path("b.safetensors")}, {},
                                          {.set = path("set"), .stalls = stalls, .steps = {}}, tell)
            .all.moved;
  };
  const auto counted = [&](Dtype copies) {
    open([&](const TensorView& a, const TensorView& b) {
      std::vector<std::uint8_t> bits((a.count + 7) / 8);
      sink = optimizer::changed(a, b, copies, 0, a.count, bits);
    });
  };
  const auto read = [&] {
    open([](const TensorView& a, const TensorView& b) {
      sink = bench::read_all({a.data, a.bytes()}) + bench::read_all({b.data, b.bytes()});
    });
  };
  std::vector<bench::Way> ways = {
      {"read both mapped files", bytes, read},
      {"changed BF16 copies: count and bits", bytes, [&] { counted(Dtype::bf16); }},
      {"changed FP16 copies: count and bits", bytes, [&] { counted(Dtype::f16); }},
      {"changed E4M3 copies: count and bits", bytes, [&] { counted(Dtype::f8_e4m3); }},
      {"halfscope weights: set, and when weights would move", bytes, [&] { found(true); }},
      {"halfscope weights --counts: set", bytes, [&] { found(false); }}};
  std::vector<bench::Result> results;
  bench::race(ways, 1, results, 3);
  results.push_back({"most private memory", 1, most, "MB", 0});
  bench::report(results, given.json);
  std::filesystem::remove_all(folder);
}
