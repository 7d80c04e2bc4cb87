// SPDX-License-Identifier: Apache-2.0
// Emulated Tensor Core steps per second and the time of a matrix product, compared with the
// simulator's binary32 product by Eigen. One step adds 4 to 32 products to one output.
//
//   bench_tensor_core [--json FILE] [--size N]      products of N x N x N (default 1024)
#include <tbb/info.h>

#include <random>

#include "bench/bench.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/tensor_core/gemm.hpp"
#include "halfscope/tensor_core/reference.hpp"
#include "sim/backend/cpu/product.hpp"

namespace {

using namespace halfscope;
using namespace halfscope::tensor_core;

constexpr int kRounds = 5;

/// Square matrices of normal binary16 numbers around 1, of both signs.
struct Data {
  explicit Data(std::int64_t size)
      : n(size), a(elements(1)), b(elements(2)), d(static_cast<std::size_t>(n * n)) {}

  std::vector<float> elements(unsigned seed) const {
    std::mt19937_64 random(seed);
    std::vector<float> out(static_cast<std::size_t>(n * n));
    for (float& x : out) {
      const std::uint64_t word = random();
      x = static_cast<float>(
          to_double(kBinary16, (word & 0x83FF) | (10 + word / 65536 % 10) << 10));
    }
    return out;
  }

  GemmShape shape() const { return {n, n, n}; }
  MatrixAt<const float> left() const { return {a.data(), n, 1}; }
  MatrixAt<const float> right() const { return {b.data(), n, 1}; }
  MatrixAt<float> result() { return {d.data(), n, 1}; }

  std::int64_t n;
  std::vector<float> a, b, d;
};

double best_seconds(int threads, const std::function<void()>& work) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    best = std::min(best, threads == 1 ? bench::thread_seconds(work) : bench::wall_seconds(work));
  }
  return best;
}

double seconds(Data& data, const Gemm& how) {
  return best_seconds(how.threads,
                      [&] { gemm(how, data.shape(), data.left(), data.right(), data.result()); });
}

void add_units(std::size_t size, std::vector<bench::Result>& results) {
  Data data(static_cast<std::int64_t>(std::min<std::size_t>(size, 512)));
  const double products = static_cast<double>(data.n) * static_cast<double>(data.n * data.n);
  for (const std::string_view name : {"volta", "ampere", "hopper"}) {
    for (const Accumulator d : {Accumulator::binary32, Accumulator::binary16}) {
      const Unit& unit = find_architecture(name)->unit;
      const double taken = seconds(data, {.unit = unit, .accumulator = d, .threads = 1});
      results.push_back(
          {fmt::format("{}, steps of {}, sums of {} bits", name, unit.length, format_of(d).width),
           1, products / unit.length / taken / 1e6, "M steps/s"});
    }
  }
}

/// Measures chain(), one output at a time.
void add_scalar(std::vector<bench::Result>& results) {
  constexpr std::size_t kSteps = 1 << 16;
  std::mt19937_64 random(3);
  std::vector<std::uint16_t> a(16 * kSteps), b(a.size());
  for (auto* const side : {&a, &b}) {
    for (std::uint16_t& x : *side) {
      const std::uint64_t word = random();
      x = static_cast<std::uint16_t>((word & 0x83FF) | (10 + word / 65536 % 10) << 10);
    }
  }
  const Chain chain = chain_of(kBinary16, kBinary16);
  volatile std::uint32_t sink = 0;
  const double taken = best_seconds(1, [&] {
    std::uint32_t all = 0;
    for (std::size_t i = 0; i < a.size(); i += 16) {
      all ^= chain(kHopper, Accumulator::binary32, &a[i], &b[i], 16, 0);
    }
    sink = all;
  });
  results.push_back({"hopper, steps of 16, the scalar function", 1,
                     static_cast<double>(kSteps) / taken / 1e6, "M steps/s"});
}

void add_product(Data& data, std::vector<bench::Result>& results) {
  const std::int64_t n = data.n;
  std::vector<int> counts = {1};
  if (tbb::info::default_concurrency() > 1) counts.push_back(tbb::info::default_concurrency());
  const std::string shape = fmt::format("{} x {} x {}", n, n, n);
  for (const int threads : counts) {
    const double taken = seconds(data, {.unit = kHopper, .threads = threads});
    results.push_back({shape + ", hopper", threads, 1e3 * taken, "ms"});
    if (threads != 1) continue;
    const double eigen = best_seconds(1, [&] {
      sim::backend::cpu::product_kernels().plain({n, n, n}, {data.a.data(), n}, {data.b.data(), n},
                                                 {data.d.data(), n});
    });
    results.push_back({shape + ", binary32 by Eigen", 1, 1e3 * eigen, "ms"});
    results.push_back({shape + ", hopper's time over Eigen's", 1, taken / eigen, "times"});
  }
}

void add_references(std::size_t size, std::vector<bench::Result>& results) {
  Data data(static_cast<std::int64_t>(std::min<std::size_t>(size, 256)));
  const std::pair<const char*, ReferenceSum> sums[] = {
      {"binary32 in sequence", ReferenceSum::sequential32},
      {"binary32 in pairs", ReferenceSum::pairwise32},
      {"binary16 in sequence", ReferenceSum::sequential16},
      {"exact", ReferenceSum::exact}};
  for (const auto& [name, sum] : sums) {
    const double taken = bench::thread_seconds([&, of = sum] {
      reference_gemm(of, data.shape(), data.left(), data.right(), data.result(), 1);
    });
    results.push_back(
        {fmt::format("{} x {} x {}, {}", data.n, data.n, data.n, name), 1, 1e3 * taken, "ms"});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given = bench::arguments(argc, argv, "--size", 1024);
  std::vector<bench::Result> results;
  add_units(given.number, results);
  add_scalar(results);
  Data data(static_cast<std::int64_t>(given.number));
  add_product(data, results);
  add_references(given.number, results);
  bench::report(results, given.json);
  return 0;
}
