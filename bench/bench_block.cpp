// SPDX-License-Identifier: Apache-2.0
// Speed of the quantiser of block formats, as a ratio to reading its values.
//
//   bench_block [--json FILE] [--elements N]     N values of binary32 (default 2^25)
#include <random>

#include "bench/bench.hpp"
#include "halfscope/block/quantise.hpp"

namespace {

using namespace halfscope;

volatile std::uint64_t sink = 0;  // prevents optimising the work away

constexpr std::size_t kColumns = 4096;

/// Returns normal numbers in rows of magnitudes from 2^-20 to 2^3.
std::vector<float> gradients(std::size_t rows) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> out(rows * kColumns);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = std::ldexp(normal(random), static_cast<int>(i / kColumns % 24) - 20);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given = bench::arguments(argc, argv, "--elements", std::size_t{1} << 25);
  const std::size_t rows = std::max<std::size_t>(given.number / kColumns, 128);
  const std::vector<float> values = gradients(rows);
  const auto bytes = static_cast<double>(values.size() * sizeof(float));
  std::vector<bench::Result> results;
  for (const int threads : {1, 2}) {
    std::vector<bench::Way> ways = {
        {"read", bytes,
         [&] { sink = bench::read_all(std::as_bytes(std::span(values)), threads); }}};
    std::vector<block::Quantised> outputs(9);  // filled again by each round
    std::size_t used = 0;
    for (const char* name :
         {"mxfp8-e4m3-floor", "mxfp8-e4m3-even", "mxfp8-e4m3-ceil", "mxfp8-e4m3-rceil",
          "mxfp4-floor", "fp8-1x128", "fp8-128x128", "nvfp4", "nvfp4-2d"}) {
      block::Quantised& out = outputs[used++];
      ways.push_back({name, bytes, [&values, &out, rows, threads, name] {
                        block::quantise(block::recipe_named(name), {values, rows, kColumns},
                                        {.threads = threads}, out);
                        sink = out.codes.front();
                      }});
    }
    bench::race(ways, threads, results);
  }
  bench::report(results, given.json);
  return 0;
}
