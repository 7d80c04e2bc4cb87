// SPDX-License-Identifier: Apache-2.0
// Shared by the benchmarks: arguments, the best of several runs, the cost of reading memory, and
// the output of results as a table and as JSON with the processor and the vector target. Times vary
// from run to run; only ratios to reading the same memory in the same run are meaningful.
#pragma once

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/device/vector_target.hpp"

namespace bench {

using Json = nlohmann::ordered_json;

/// Arguments of a benchmark: --json FILE, and one option with a number.
struct Arguments {
  std::string json;
  std::size_t number;
};

/// Parses the arguments, and sets the vector target that the environment requests. With --targets
/// alone, prints this machine's vector targets, the best first, and exits.
inline Arguments arguments(int argc, char** argv, std::string_view option, std::size_t number) {
  if (argc == 2 && std::string_view(argv[1]) == "--targets") {
    for (const std::string& name : halfscope::vector_targets()) fmt::print("{}\n", name);
    std::exit(0);
  }
  halfscope::use_vector_target_of_environment();
  Arguments given{"", number};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--json") given.json = argv[i + 1];
    if (argv[i] == option) given.number = std::stoull(argv[i + 1]);
  }
  return given;
}

/// One result. ratio_to_read is 0 if it is not meaningful.
struct Result {
  std::string name;
  int threads;
  double value;
  std::string unit = "GB/s";
  double ratio_to_read = 0;
};

/// Returns the processor's name: "AMD EPYC, family 25, model 17". The numbers are needed because
/// many virtual machines report a name without the kind of processor.
inline std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  std::string name, family, model;
  for (std::string line; std::getline(info, line) && !line.empty();) {  // the first core only
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) name = value;
    if (line.starts_with("cpu family")) family = ", family " + value;
    if (line.starts_with("model\t")) model = ", model " + value;
  }
  return (name.empty() ? "unknown processor" : name) + family + model;
}

inline Json to_json(const std::vector<Result>& results) {
  Json list = Json::array();
  for (const Result& r : results) {
    list.push_back(
        {{"name", r.name}, {"threads", r.threads}, {"value", r.value}, {"unit", r.unit}});
    list.back()["processor"] = processor();
    list.back()["target"] = halfscope::vector_target();
    if (r.ratio_to_read != 0) list.back()["ratio_to_read"] = r.ratio_to_read;
  }
  return list;
}

/// Prints the results, and writes them to the file of --json.
inline void report(const std::vector<Result>& results, const std::string& json) {
  fmt::print("{}; vector target {}\n", processor(), halfscope::vector_target());
  fmt::print("{:<58} {:>7} {:>15} {:>14}\n", "", "threads", "", "ratio to read");
  for (const Result& r : results) {
    const std::string ratio = r.ratio_to_read == 0 ? "" : fmt::format("{:.2f}", r.ratio_to_read);
    fmt::print("{:<58} {:>7} {:>10.1f} {:<7} {:>11}\n", r.name, r.threads, r.value, r.unit, ratio);
  }
  if (!json.empty()) std::ofstream(json) << to_json(results).dump(1) << "\n";
}

/// Returns the seconds of CPU time of this thread, independent of other load on the machine. `work`
/// must run on this thread only.
inline double thread_seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec t = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

/// Returns the seconds of elapsed time.
inline double wall_seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return taken.count();
}

/// One implementation to measure. `bytes` is the number of bytes that it reads.
struct Way {
  std::string name;
  double bytes;
  std::function<void()> work;
  double best = 1e9;  ///< seconds
};

/// Adds the best speed of each implementation. They run in turns, so that a disturbance affects all
/// of them. The first must be read_all().
inline void race(std::vector<Way>& ways, int threads, std::vector<Result>& results,
                 int rounds = 5) {
  for (int round = 0; round < rounds; ++round) {
    for (Way& way : ways) {
      const double taken = threads == 1 ? thread_seconds(way.work) : wall_seconds(way.work);
      way.best = std::min(way.best, taken);
    }
  }
  const double read = ways.front().bytes / ways.front().best;
  for (const Way& way : ways) {
    const double speed = way.bytes / way.best;
    results.push_back({way.name, threads, speed / 1e9, "GB/s", speed / read});
  }
}

/// Reads memory for comparison: returns the sum of its 64-bit words.
inline std::uint64_t read_all(std::span<const std::byte> memory, int threads = 1) {
  using Range = tbb::blocked_range<std::size_t>;
  const auto sum_range = [&](const Range& range, std::uint64_t sum) {
    for (std::size_t i = range.begin(); i < range.end(); ++i) {
      std::uint64_t word;
      std::memcpy(&word, memory.data() + 8 * i, sizeof word);
      sum += word;
    }
    return sum;
  };
  const std::size_t words = memory.size() / 8;
  if (threads == 1) return sum_range(Range(0, words), 0);
  tbb::task_arena arena(threads);
  return arena.execute([&] {
    return tbb::parallel_reduce(Range(0, words, 1 << 19), std::uint64_t{0}, sum_range,
                                std::plus<>());
  });
}

}  // namespace bench
