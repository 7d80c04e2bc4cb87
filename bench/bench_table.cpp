// SPDX-License-Identifier: Apache-2.0
// Speed of the binade table and of `analyze` on a file, as ratios to reading the same memory in the
// same run: these machines are noisy, so only ratios mean something.
//
//   bench_table [--json FILE] [--elements N]      N binary32 gradients, 2^28 (1 GiB) by default
#include <fmt/format.h>
#include <sys/resource.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "analyzers/underflow.hpp"
#include "halfscope/log/safetensors.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/count.hpp"

namespace {

using namespace halfscope;
using Json = nlohmann::ordered_json;

struct Result {
  std::string name;
  int threads;
  double gigabytes_per_second;
  double ratio_to_read;
};

/// Log-normal magnitudes of either sign: standard deviation of log2 in binades, 1 % zeros.
std::vector<float> gradients(std::size_t n, double deviation) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> log2_magnitude(-18, deviation);
  std::vector<float> some(std::size_t{1} << 20), values(n);
  for (float& x : some) {
    const bool zero = random() % 100 == 0;
    const double sign = random() % 2 == 0 ? 1 : -1;
    x = zero ? 0.0f : static_cast<float>(sign * std::exp2(log2_magnitude(random)));
  }
  for (std::size_t i = 0; i < n; ++i) values[i] = some[(i * 0x9E3779B97F4A7C15u) >> 44];
  return values;
}

std::vector<std::uint16_t> narrowed(const std::vector<float>& values, Format format) {
  std::vector<std::uint16_t> narrow(values.size());
  std::transform(values.begin(), values.end(), narrow.begin(), [format](float x) {
    return static_cast<std::uint16_t>(from_float(format, x).bits);
  });
  return narrow;
}

/// Best of several runs, in seconds.
double best_time(const std::function<void()>& work) {
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  return best;
}

/// What reading costs: the sum of the array as 64-bit words.
std::uint64_t read_all(const TensorView& t, int threads) {
  using Range = tbb::blocked_range<std::size_t>;
  const auto sum_range = [&](const Range& range, std::uint64_t sum) {
    for (std::size_t i = range.begin(); i < range.end(); ++i) {
      std::uint64_t word;
      std::memcpy(&word, t.data + 8 * i, sizeof word);
      sum += word;
    }
    return sum;
  };
  const std::size_t words = t.bytes() / 8;
  if (threads == 1) return sum_range(Range(0, words), 0);
  tbb::task_arena arena(threads);
  return arena.execute([&] {
    return tbb::parallel_reduce(Range(0, words, 1 << 19), std::uint64_t{0}, sum_range,
                                std::plus<>());
  });
}

void bench_view(const std::string& name, const TensorView& t, std::vector<Result>& results) {
  volatile std::uint64_t sink = 0;
  for (const int threads : {1, 2}) {
    const double read = best_time([&] { sink = read_all(t, threads); });
    const double table = best_time([&] { sink = count_binades(t, threads).total(); });
    const double bytes = static_cast<double>(t.bytes()) / 1e9;
    results.push_back({"read, " + name, threads, bytes / read, 1.0});
    results.push_back({"binade table, " + name, threads, bytes / table, read / table});
  }
}

long anonymous_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::atol(line.c_str() + 8);
  }
  return -1;
}

/// The whole of `analyze`, file to findings, mapped.
void bench_file(const std::vector<float>& values, std::vector<Result>& results, Json& extra) {
  const auto path = std::filesystem::temp_directory_path() / "halfscope_bench.safetensors";
  const TensorView view{Dtype::f32, reinterpret_cast<const std::byte*>(values.data()),
                        values.size()};
  log::write_safetensors(path, {{"weight_grad/bench", {values.size()}, view}});
  const double bytes = static_cast<double>(view.bytes()) / 1e9;
  volatile std::uint64_t sink = 0;
  const double read = best_time([&] { sink = read_all(view, 2); });
  const long before = anonymous_kib();
  const double taken =
      best_time([&] { sink = analyzers::analyze({path}, {}, {}).tensors.front().counts.total; });
  results.push_back({"analyze a safetensors file, all threads", 2, bytes / taken, read / taken});
  extra["analyze_anonymous_memory_mib"] = static_cast<double>(anonymous_kib() - before) / 1024;
  std::filesystem::remove(path);
}

Json to_json(const std::vector<Result>& results) {
  Json list = Json::array();
  for (const Result& r : results) {
    list.push_back({{"name", r.name},
                    {"threads", r.threads},
                    {"value", r.gigabytes_per_second},
                    {"unit", "GB/s"},
                    {"ratio_to_read", r.ratio_to_read}});
  }
  return list;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t elements = std::size_t{1} << 28;
  std::string json;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--json") json = argv[i + 1];
    if (std::string_view(argv[i]) == "--elements") elements = std::stoull(argv[i + 1]);
  }
  std::vector<Result> results;
  Json extra;
  for (const double deviation : {3.0, 6.0}) {
    const std::vector<float> values = gradients(elements, deviation);
    const auto* data = reinterpret_cast<const std::byte*>(values.data());
    const std::string what = fmt::format("log2 deviation {:.0f}", deviation);
    bench_view("F32, " + what, {Dtype::f32, data, elements}, results);
    if (deviation == 3.0) bench_file(values, results, extra);
    if (deviation == 6.0) {
      for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
        const std::vector<std::uint16_t> narrow = narrowed(values, format_of(dtype));
        bench_view(std::string(name_of(dtype)) + ", " + what,
                   {dtype, reinterpret_cast<const std::byte*>(narrow.data()), narrow.size()},
                   results);
      }
    }
  }
  fmt::print("{:<45} {:>7} {:>9} {:>14}\n", "", "threads", "GB/s", "ratio to read");
  for (const Result& r : results) {
    fmt::print("{:<45} {:>7} {:>9.1f} {:>14.2f}\n", r.name, r.threads, r.gigabytes_per_second,
               r.ratio_to_read);
  }
  fmt::print("anonymous memory that analyze added: {} MiB\n",
             extra["analyze_anonymous_memory_mib"].dump());
  if (!json.empty()) std::ofstream(json) << to_json(results).dump(1) << "\n";
  return 0;
}
