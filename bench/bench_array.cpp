// SPDX-License-Identifier: Apache-2.0
// Speed of the array operations on one thread, compared with hand-written F16C loops and Imath.
// Speeds are ratios to reading the same memory in the same run: absolute times vary too much. The
// implementations run in turns; each has its best of several rounds.
//
//   bench_array [--json FILE] [--elements N]      default: 64 Mi elements
#include <cmath>
#include <random>

#include "bench/bench.hpp"
#include "bench/f16c_loops.hpp"
#include "bench/imath_loops.hpp"
#include "halfscope/array/array.hpp"

namespace {

using namespace halfscope;
using Imath::half;
using Words = std::vector<std::uint16_t>;

constexpr int kRounds = 9;

/// One implementation to measure. `input` is the number of bytes that it reads.
struct Way {
  std::string name;
  double input;
  std::function<void()> work;
  bool in_place = false;  ///< works on Data::in_place, which is restored before each run
  double best = 1e9;      ///< seconds
};

/// Returns values whose log2 magnitude is normal (mean -10, deviation 10), clipped to [-40, 20]. In
/// binary16 about 65 % are normal, 28 % subnormal, 7 % become zero, 0.3 % overflow.
std::vector<float> mixed_values(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> log2_magnitude(-10, 10);
  std::vector<float> some(std::size_t{1} << 20), values(n);
  for (float& x : some) {
    double log2 = 100;
    while (log2 < -40 || log2 > 20) log2 = log2_magnitude(random);
    x = static_cast<float>((random() % 2 == 0 ? 1 : -1) * std::exp2(log2));
  }
  for (std::size_t i = 0; i < n; ++i) values[i] = some[(i * 0x9E3779B97F4A7C15u) >> 44];
  return values;
}

/// The data of all implementations.
struct Data {
  explicit Data(std::size_t n)
      : values(mixed_values(n, 1)), in_place(values), a(n), b(n), c(n), out(n) {
    unsigned seed = 2;
    for (Words* words : {&a, &b, &c}) convert(kBinary16, mixed_values(n, seed++), *words);
  }
  std::vector<float> values, in_place;
  Words a, b, c, out;
};

half* halves(Words& words) { return reinterpret_cast<half*>(words.data()); }

void add_conversions(Data& d, std::vector<Way>& ways) {
  const std::size_t n = d.values.size();
  const double bytes = 4.0 * static_cast<double>(n);
  const ArrayOptions one = {.threads = 1};
  const ArrayOptions stochastic = {.modes = {.rounding = Rounding::stochastic}, .threads = 1};
  ways.push_back(
      {"convert: halfscope", bytes, [&d, one] { convert(kBinary16, d.values, d.out, one); }});
  ways.push_back({"convert: F16C loop", bytes,
                  [&d, n] { f16c_loops::convert(d.values.data(), d.out.data(), n); }});
  ways.push_back({"convert: Imath", bytes,
                  [&d, n] { imath_loops::convert(d.values.data(), halves(d.out), n); }});
  ways.push_back({"convert to bfloat16: halfscope", bytes,
                  [&d, one] { convert(kBfloat16, d.values, d.out, one); }});
  ways.push_back({"convert from binary16: halfscope", bytes / 2,
                  [&d, one] { convert(kBinary16, d.a, d.in_place, one); }});
  ways.push_back(
      {"quantise: halfscope", bytes, [&d, one] { quantise(kBinary16, d.in_place, one); }, true});
  ways.push_back({"quantise: F16C loop", bytes,
                  [&d, n] { f16c_loops::quantise(d.in_place.data(), n); }, true});
  ways.push_back(
      {"quantise: Imath", bytes, [&d, n] { imath_loops::quantise(d.in_place.data(), n); }, true});
  ways.push_back({"quantise to bfloat16: halfscope", bytes,
                  [&d, one] { quantise(kBfloat16, d.in_place, one); }, true});
  ways.push_back({"quantise, stochastic: halfscope", bytes,
                  [&d, stochastic] { quantise(kBinary16, d.in_place, stochastic); }, true});
}

void add_arithmetic(Data& d, std::vector<Way>& ways) {
  const std::size_t n = d.values.size();
  const double two = 4.0 * static_cast<double>(n), three = 6.0 * static_cast<double>(n);
  const ArrayOptions one = {.threads = 1};
  ways.push_back({"add: halfscope", two, [&d, one] { add(kBinary16, d.a, d.b, d.out, one); }});
  ways.push_back({"add: F16C loop", two,
                  [&d, n] { f16c_loops::add(d.a.data(), d.b.data(), d.out.data(), n); }});
  ways.push_back({"add: Imath", two,
                  [&d, n] { imath_loops::add(halves(d.a), halves(d.b), halves(d.out), n); }});
  ways.push_back(
      {"multiply: halfscope", two, [&d, one] { multiply(kBinary16, d.a, d.b, d.out, one); }});
  ways.push_back({"multiply: F16C loop", two,
                  [&d, n] { f16c_loops::multiply(d.a.data(), d.b.data(), d.out.data(), n); }});
  ways.push_back({"multiply: Imath", two,
                  [&d, n] { imath_loops::multiply(halves(d.a), halves(d.b), halves(d.out), n); }});
  ways.push_back({"fma: halfscope, exact", three,
                  [&d, one] { fused_multiply_add(kBinary16, d.a, d.b, d.c, d.out, one); }});
  ways.push_back({"fma: F16C loop, rounds twice", three, [&d, n] {
                    f16c_loops::fma_rounded_twice(d.a.data(), d.b.data(), d.c.data(), d.out.data(),
                                                  n);
                  }});
  ways.push_back({"fma: Imath, rounds twice", three, [&d, n] {
                    imath_loops::fma_rounded_twice(halves(d.a), halves(d.b), halves(d.c),
                                                   halves(d.out), n);
                  }});
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given = bench::arguments(argc, argv, "--elements", std::size_t{1} << 26);
  const std::size_t elements = given.number / 32 * 32;
  Data data(elements);
  volatile std::uint64_t sink = 0;
  std::vector<Way> ways;
  ways.push_back({"read", 4.0 * static_cast<double>(elements),
                  [&] { sink = bench::read_all(std::as_bytes(std::span(data.values))); }});
  add_conversions(data, ways);
  add_arithmetic(data, ways);
  const bool has_f16c = __builtin_cpu_supports("f16c") && __builtin_cpu_supports("avx2") &&
                        __builtin_cpu_supports("fma");
  if (!has_f16c) {
    fmt::print("this processor has no F16C: no F16C loop, no Imath\n");
    std::erase_if(ways, [](const Way& way) {
      return way.name.find("halfscope") == std::string::npos && way.name != "read";
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Way& way : ways) {
      if (way.in_place) data.in_place = data.values;
      way.best = std::min(way.best, bench::thread_seconds(way.work));
    }
  }
  const double read = ways[0].input / ways[0].best;
  std::vector<bench::Result> results;
  for (const Way& way : ways) {
    const double speed = way.input / way.best;
    results.push_back({way.name, 1, speed / 1e9, "GB/s", speed / read});
  }
  bench::report(results, given.json);
  return 0;
}
