// SPDX-License-Identifier: Apache-2.0
// What the benchmarks share: their arguments, the best of several runs, what reading memory costs,
// and the figures as a table and as JSON, with the processor and the vector target. These machines
// are noisy, so only ratios to reading the same memory in the same run mean something.
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

/// --json FILE, and one option with a number. The vector target: of the environment.
struct Arguments {
  std::string json;
  std::size_t number;
};

/// With --targets alone the program prints this machine's vector targets, the best first, and ends.
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

/// One figure. ratio_to_read: absent where it makes no sense.
struct Result {
  std::string name;
  int threads;
  double value;
  std::string unit = "GB/s";
  double ratio_to_read = 0;
};

/// As Linux names it: "AMD EPYC, family 25, model 17". Many names of virtual machines need the
/// numbers to tell a kind of processor.
inline std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  std::string name, family, model;
  for (std::string line; std::getline(info, line) && !line.empty();) {  // of the first core
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

/// Prints the figures, and writes them where --json says.
inline void report(const std::vector<Result>& results, const std::string& json) {
  fmt::print("{}; vector target {}\n", processor(), halfscope::vector_target());
  fmt::print("{:<58} {:>7} {:>15} {:>14}\n", "", "threads", "", "ratio to read");
  for (const Result& r : results) {
    const std::string ratio = r.ratio_to_read == 0 ? "" : fmt::format("{:.2f}", r.ratio_to_read);
    fmt::print("{:<58} {:>7} {:>10.1f} {:<7} {:>11}\n", r.name, r.threads, r.value, r.unit, ratio);
  }
  if (!json.empty()) std::ofstream(json) << to_json(results).dump(1) << "\n";
}

/// Of this thread's time on the processor: what else runs on the machine takes none of it. For work
/// on one thread.
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

/// By the clock on the wall.
inline double wall_seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return taken.count();
}

/// One way to do one thing. bytes: what it reads.
struct Way {
  std::string name;
  double bytes;
  std::function<void()> work;
  double best = 1e9;  ///< seconds
};

/// The best of several rounds. The ways take turns, so that what disturbs one disturbs all; the
/// first is reading.
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

/// What reading costs: the sum of the memory as 64-bit words.
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
