// SPDX-License-Identifier: Apache-2.0
// Speed of the binade table, alone and with a classification at 65 scales, and of `analyze` on a
// file, as ratios to reading the same memory in the same run. For comparison, a plain loop counts
// only exponents; bench_numpy.py measures NumPy and PyTorch.
//
//   bench_table [--json FILE] [--elements N]      N values of each kind (default 2^26)
#include <cmath>
#include <filesystem>
#include <random>

#include "analyzers/underflow/underflow.hpp"
#include "bench/bench.hpp"
#include "bench/histogram_loops.hpp"
#include "halfscope/log/safetensors.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/count.hpp"

namespace {

using namespace halfscope;

constexpr std::size_t kDistinct = std::size_t{1} << 20;

/// Returns log-normal magnitudes of both signs, with 1 % zeros. `deviation` is the standard
/// deviation of log2, in binades.
std::vector<float> gradients(double deviation) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> log2_magnitude(-18, deviation);
  std::vector<float> values(kDistinct);
  for (float& x : values) {
    const bool zero = random() % 100 == 0;
    const double sign = random() % 2 == 0 ? 1 : -1;
    x = zero ? 0.0f : static_cast<float>(sign * std::exp2(log2_magnitude(random)));
  }
  return values;
}

std::vector<std::uint16_t> narrowed(const std::vector<float>& values, Format format) {
  std::vector<std::uint16_t> narrow(values.size());
  std::transform(values.begin(), values.end(), narrow.begin(), [format](float x) {
    return static_cast<std::uint16_t>(from_float(format, x).bits);
  });
  return narrow;
}

/// Returns n values drawn from `some` in random order.
template <typename T>
std::vector<T> drawn(const std::vector<T>& some, std::size_t n) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = some[(i * 0x9E3779B97F4A7C15u) >> 44];
  return values;
}

template <typename T>
TensorView view_as(Dtype dtype, const std::vector<T>& values) {
  return {dtype, std::as_bytes(std::span(values)).data(), values.size()};
}

/// Returns the number of values that binary16 loses, summed over the scales 2^-32 to 2^32.
std::uint64_t what_if(const TensorView& t, int threads) {
  const BinadeTable table = count_binades(t, threads);
  const Boundaries limits = boundaries(kBinary16);
  std::uint64_t lost = 0;
  for (int k = -32; k <= 32; ++k) {
    const Classes c = classify(table, before_scaling(limits, k));
    lost += c.flushed_to_zero.low + c.overflow.low;
  }
  return lost;
}

std::uint64_t plain_loop(const TensorView& t) {
  std::uint64_t counts[256] = {};
  const void* const data = t.data;  // aligned: it is the data of a vector of this type
  switch (t.dtype) {
    case Dtype::f16:
      histogram_loops::binary16(static_cast<const std::uint16_t*>(data), t.count, counts);
      break;
    case Dtype::bf16:
      histogram_loops::bfloat16(static_cast<const std::uint16_t*>(data), t.count, counts);
      break;
    default: histogram_loops::binary32(static_cast<const std::uint32_t*>(data), t.count, counts);
  }
  return counts[0];
}

void bench_view(const std::string& name, const TensorView& t, std::vector<bench::Result>& results) {
  volatile std::uint64_t sink = 0;
  const auto bytes = static_cast<double>(t.bytes());
  for (const int threads : {1, 2}) {
    std::vector<bench::Way> ways;
    ways.push_back({"read, " + name, bytes, [&, threads] {
                      sink = bench::read_all({t.data, t.bytes()}, threads);
                    }});
    ways.push_back({"binade table, " + name, bytes,
                    [&, threads] { sink = count_binades(t, threads).total(); }});
    ways.push_back(
        {"what-if over 65 scales, " + name, bytes, [&, threads] { sink = what_if(t, threads); }});
    if (threads == 1) {
      ways.push_back({"plain loop, four sub-tables, exponents alone, " + name, bytes,
                      [&] { sink = plain_loop(t); }});
    }
    bench::race(ways, threads, results);
  }
}

/// Measures the classification at 65 scales from an existing table.
void bench_classify(const TensorView& t, std::vector<bench::Result>& results) {
  const BinadeTable table = count_binades(t);
  const Boundaries limits = boundaries(kBinary16);
  volatile std::uint64_t sink = 0;
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    best = std::min(best, bench::thread_seconds([&] {
                      for (int k = -32; k <= 32; ++k)
                        sink = classify(table, before_scaling(limits, k)).normal.low;
                    }));
  }
  results.push_back({"65 scales from a table", 1, best * 1e6, "us"});
}

long anonymous_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::atol(line.c_str() + 8);
  }
  return -1;
}

/// Measures `analyze` as a whole, from a mapped file to the findings.
void bench_file(const TensorView& t, std::vector<bench::Result>& results) {
  const auto path = std::filesystem::temp_directory_path() / "halfscope_bench.safetensors";
  log::write_safetensors(path, {{"weight_grad/bench", {t.count}, t}});
  volatile std::uint64_t sink = 0;
  const auto bytes = static_cast<double>(t.bytes());
  const long before = anonymous_kib();
  std::vector<bench::Way> ways;
  ways.push_back({"read, for analyze", bytes, [&] {
                    sink = bench::read_all({t.data, t.bytes()}, 2);
                  }});
  ways.push_back(
      {"analyze a safetensors file, all threads", bytes, [&] {
         sink = analyzers::underflow::analyze({path}, {}, {}).tensors().front().counts.total;
       }});
  bench::race(ways, 2, results);
  results.push_back({"anonymous memory that analyze added", 2,
                     static_cast<double>(anonymous_kib() - before) / 1024, "MiB"});
  std::filesystem::remove(path);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given = bench::arguments(argc, argv, "--elements", std::size_t{1} << 26);
  std::vector<bench::Result> results;
  for (const double deviation : {3.0, 6.0}) {
    const std::vector<float> some = gradients(deviation);
    const std::string what = fmt::format("log2 deviation {:.0f}", deviation);
    {
      const std::vector<float> values = drawn(some, given.number);
      bench_view("F32, " + what, view_of(values), results);
      if (deviation == 3.0) bench_classify(view_of(values), results);
      if (deviation == 3.0) bench_file(view_of(values), results);
    }
    for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
      const auto values = drawn(narrowed(some, format_of(dtype)), given.number);
      bench_view(fmt::format("{}, {}", name_of(dtype), what), view_as(dtype, values), results);
    }
  }
  bench::report(results, given.json);
  return 0;
}
