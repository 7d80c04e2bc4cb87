// SPDX-License-Identifier: Apache-2.0
// Lists of tensors counted in one launch. Runs on the emulated device, too.
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cuda/device.hpp"
#include "cuda/skip.hpp"
#include "cuda/stream.hpp"
#include "cuda/table_samples.hpp"

namespace test_table {

/// More tensors than a launch has blocks: a block counts several.
Samples small_tensors(std::size_t n) {
  Samples out;
  std::mt19937 random(2500);
  for (unsigned i = 0; i < n; ++i) {
    const Dtype dtype = std::array{Dtype::f16, Dtype::bf16, Dtype::f32}[random() % 3];
    out.emplace_back(dtype, log_normal(dtype, i % 500 == 0 ? 40000 : random() % 50, i), i % 3);
  }
  return out;
}

TEST_CASE("tables of 300 tensors of mixed sizes and dtypes in one launch", "[cuda][table][gpu]") {
  if (skipped()) return;
  std::mt19937 random(300);
  Samples samples;
  for (unsigned i = 0; i < 300; ++i) {
    const Dtype dtype = std::array{Dtype::f16, Dtype::bf16, Dtype::f32}[i % 3];
    const std::size_t n = i % 50 == 0 ? 100000 + i : random() % 2000;
    samples.emplace_back(dtype, log_normal(dtype, n, i), i % 4);
  }
  require_same(samples);
}

TEST_CASE("tensors in slices", "[cuda][table][gpu]") {
  if (skipped()) return;
  Samples samples;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    samples.emplace_back(dtype, log_normal(dtype, 40000, 1), 1);
    samples.emplace_back(dtype, log_normal(dtype, 100, 1));
  }
  samples.emplace_back(Dtype::f32, narrow_floats(-24, 3, 5000));
  require_same(samples, {.encodings_from = 0, .slice = 1024});
  require_same(samples, {.encodings_from = 1 << 20, .slice = 1000});
}

TEST_CASE("more tensors than blocks", "[cuda][table][gpu]") {
  if (skipped()) return;
  require_same(small_tensors(2500));
  require_same(small_tensors(500), {.encodings_from = 0});
}

TEST_CASE("facts of more tensors than blocks", "[cuda][table][gpu]") {
  if (skipped()) return;
  const Samples samples = small_tensors(1500);
  const Stream stream;
  const std::vector<GradientSums> got = FactsCount(tensors_of(samples), stream.get()).get();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const GradientSums want = sums_of(samples[i]);
    REQUIRE(got[i].max_abs == want.max_abs);
    REQUIRE(are_close(got[i].sum_squares, want.sum_squares, want.sum_squares));
  }
}

TEST_CASE("random lists, added one after another", "[cuda][table][gpu]") {
  if (skipped()) return;
  std::mt19937 random(54);
  Samples samples;
  for (unsigned i = 0; i < 60; ++i) {
    const Dtype dtype = std::array{Dtype::f16, Dtype::bf16, Dtype::f32}[random() % 3];
    const std::size_t most = std::size_t{1} << random() % 17;
    samples.emplace_back(dtype, log_normal(dtype, random() % 4 == 0 ? 0 : random() % most, i),
                         random() % 8);
  }
  const std::vector<DeviceTensor> all = tensors_of(samples);
  for (const CountLimits& limits : {kByParts, CountLimits{.encodings_from = 3000}}) {
    const Stream stream;
    TableCount counts(stream.get(), limits);
    for (std::size_t first = 0; first < all.size();) {
      const std::size_t n = std::min<std::size_t>(random() % 9, all.size() - first);
      REQUIRE(counts.add(std::span(all).subspan(first, n)) == first);
      first += n;
    }
    require_all_same(samples, counts.get());
  }
}

TEST_CASE("four million elements, one list", "[cuda][table][gpu][slow]") {
  if (skipped()) return;
  Samples samples;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    samples.emplace_back(dtype, log_normal(dtype, std::size_t{1} << 22, 8), 1);
    samples.emplace_back(dtype, log_normal(dtype, (std::size_t{1} << 22) - 1, 9));
  }
  require_same(samples, CountLimits());
}

TEST_CASE("results are fetched later, and may be thrown away", "[cuda][table][gpu]") {
  if (skipped()) return;
  Samples samples;
  samples.emplace_back(Dtype::f32, log_normal(Dtype::f32, 5000, 1));
  const std::vector<DeviceTensor> tensors = tensors_of(samples);
  const Stream stream;
  TableCount first(tensors, stream.get());
  { const TableCount dropped(tensors, stream.get()); }
  FactsCount facts(tensors, stream.get());
  TableCount second(tensors, stream.get());
  REQUIRE(second.get()[0].table == count_binades(samples[0].view(), 1));
  REQUIRE(first.get()[0].table == second.get()[0].table);
  REQUIRE(facts.get()[0].max_abs == sums_of(samples[0]).max_abs);
}

TEST_CASE("a list for which memory is missing has no results", "[cuda][table]") {
  if (!device::available()) return;
  Samples samples;
  samples.emplace_back(Dtype::f32, log_normal(Dtype::f32, 10, 1));
  samples.emplace_back(Dtype::f16, Bits(1 << 18, 0x3C00));  // 16,384 slices, 256 KB each: 4 GiB
  samples.emplace_back(Dtype::f32, log_normal(Dtype::f32, 7, 2));
  const std::vector<DeviceTensor> all = tensors_of(samples);
  const Stream stream;
  TableCount counts(stream.get(), {.encodings_from = 100, .slice = 16});
  REQUIRE(counts.add(std::span(all).subspan(2)) == 0);
  CHECK_THROWS_AS(counts.add(std::span(all).first(2)), std::runtime_error);
  REQUIRE(counts.add(std::span(all).first(1)) == 1);
  const std::vector<TensorFacts> got = counts.get();
  REQUIRE(got.size() == 2);
  require_same(samples[2], got[0]);
  require_same(samples[0], got[1]);
}

TEST_CASE("chunked memory is whole after an allocation that failed", "[cuda][table]") {
  std::size_t most = 64;
  cuda::ChunkedMemory memory(16, [&](std::size_t bytes) -> cuda::ChunkedMemory::Chunk {
    if (bytes > most) throw std::runtime_error("no memory");
    return {new std::byte[bytes], std::default_delete<std::byte[]>()};
  });
  CHECK_THROWS_AS(memory.take<int>(100), std::runtime_error);
  auto* const first = memory.take<int>(3);
  CHECK_THROWS_AS(memory.take<int>(100), std::runtime_error);
  most = 1000;
  auto* const large = memory.take<int>(100);
  std::fill(large, large + 100, 1);
  std::fill(first, first + 3, 2);
  CHECK(std::count(large, large + 100, 1) == 100);
}

TEST_CASE("no tensors, and what is refused, device or not", "[cuda][table]") {
  const auto message = [](const DeviceTensor& tensor) -> std::string {
    try {
      TableCount(std::span(&tensor, 1), nullptr);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  CHECK(message({Dtype::f64, nullptr, 1}) ==
        "TableCount: elements of dtype F64, expected F16, BF16 or F32");
  CHECK(message({Dtype::f16, nullptr, -1}) == "TableCount: a count of -1");
  CHECK(message({Dtype::f16, nullptr, 3}) == "TableCount: a null pointer to 3 elements");
  const DeviceTensor wrong = {Dtype::f8_e4m3, nullptr, 1};
  CHECK_THROWS_AS(FactsCount(std::span(&wrong, 1), nullptr), std::invalid_argument);
  if (!device::available()) return;
  CHECK(TableCount(std::span<const DeviceTensor>(), nullptr).get().empty());
  CHECK(FactsCount({}, nullptr).get().empty());
  TableCount ended(std::span<const DeviceTensor>(), nullptr);
  CHECK_THROWS_AS(ended.add({}), std::logic_error);
}

}  // namespace test_table
