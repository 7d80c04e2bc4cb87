// SPDX-License-Identifier: Apache-2.0
// Tables counted on the device equal the CPU's to the last count. Runs on the emulated device, too.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "cuda/device.hpp"
#include "cuda/skip.hpp"
#include "cuda/stream.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/count_cuda.hpp"
#include "halfscope/table/count/count_kernels.hpp"

namespace test_table {

using namespace halfscope;
using cuda::CountLimits;
using cuda::DeviceTensor;
using cuda::FactsCount;
using cuda::GradientSums;
using cuda::TableCount;
using cuda::TensorFacts;

using Bits = std::vector<std::uint32_t>;  // encodings, whatever their width

/// A tensor on the host and on the device, there `offset` elements behind a multiple of 256 bytes.
class Sample {
 public:
  Sample(Dtype dtype, const Bits& encodings, std::size_t offset = 0)
      : dtype_(dtype), count_(encodings.size()), width_(dtype == Dtype::f32 ? 4 : 2) {
    bytes_.resize(width_ * (offset + count_));
    for (std::size_t i = 0; i < count_; ++i) {
      std::memcpy(&bytes_[width_ * (offset + i)], &encodings[i], width_);
    }
    start_ = width_ * offset;
    device_ = device::copy_of(bytes_);
  }

  TensorView view() const { return {dtype_, bytes_.data() + start_, count_}; }
  DeviceTensor tensor() const {
    return {dtype_, device_.get() + start_, static_cast<std::int64_t>(count_)};
  }
  double value(std::size_t i) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, view().data + width_ * i, width_);
    return to_double(format_of(dtype_), bits);
  }

 private:
  Dtype dtype_;
  std::size_t count_, width_, start_ = 0;
  std::vector<std::byte> bytes_;
  std::unique_ptr<std::byte, device::Free> device_;
};

using Samples = std::vector<Sample>;

std::vector<DeviceTensor> tensors_of(const Samples& samples) {
  std::vector<DeviceTensor> out;
  for (const Sample& sample : samples) out.push_back(sample.tensor());
  return out;
}

constexpr CountLimits kByParts = {.encodings_from = std::numeric_limits<std::int64_t>::max()};

std::vector<TensorFacts> count(const Samples& samples, const CountLimits& limits = kByParts) {
  const Stream stream;
  return TableCount(tensors_of(samples), stream.get(), limits).get();
}

/// What any order of the additions may differ by.
bool are_close(double a, double b, double magnitude) {
  return std::fabs(a - b) <= 1e-12 * magnitude || a == b;
}

void require_same(const Sample& sample, const TensorFacts& got) {
  const TensorView view = sample.view();
  REQUIRE(got.table == count_binades_scalar(view, standard_cuts()));
  REQUIRE(got.table == count_binades(view, 1));
  const Moments want = moments(view);
  const double root_mean = std::sqrt(want.sum_squares / std::max<double>(1, double(view.count)));
  REQUIRE(are_close(got.moments.mean, want.mean, root_mean));
  REQUIRE(are_close(got.moments.sum_squares, want.sum_squares, want.sum_squares));
}

void require_all_same(const Samples& samples, const std::vector<TensorFacts>& got) {
  REQUIRE(got.size() == samples.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("tensor " << i << ", " << name_of(samples[i].view().dtype) << ", "
                   << samples[i].view().count);
    require_same(samples[i], got[i]);
  }
}

void require_same(const Samples& samples, const CountLimits& limits = kByParts) {
  require_all_same(samples, count(samples, limits));
}

/// Every encoding of 16 bits, in an order of no pattern.
Bits all_encodings() {
  Bits out(0x10000);
  for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = i * 40503 & 0xFFFF;
  return out;
}

/// binary32: every exponent with the fractions at and around every cut.
Bits boundary_fractions() {
  std::vector<std::uint32_t> fractions = {0, 1, 2, 0xFFF, 0x1000, 0x1001, 0x400000, 0x7FFFFF};
  for (const std::uint64_t cut : standard_cuts()) {
    for (const int off : {-1, 0, 1}) {
      fractions.push_back(
          (static_cast<std::uint32_t>(cut >> 29) + static_cast<std::uint32_t>(off)) & 0x7FFFFF);
    }
  }
  Bits out;
  for (std::uint32_t field = 0; field < 512; ++field) {
    for (const std::uint32_t fraction : fractions) out.push_back(field << 23 | fraction);
  }
  for (std::uint32_t k = 0; k < 23; ++k) {  // subnormals of every binade, more negative ones
    out.insert(out.end(), {1u << k, 0x80000000 | 1u << k, 0x80000000 | 1u << k});
  }
  return out;
}

/// Gradients' magnitudes: log-normal around 2^-12, as encodings of a dtype.
Bits log_normal(Dtype dtype, std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> log2_magnitude(-12, 6);
  Bits out(n);
  for (auto& bits : out) {
    const float x = std::exp2(log2_magnitude(random)) * (random() % 2 == 0 ? 1.0f : -1.0f);
    bits = static_cast<std::uint32_t>(from_float(format_of(dtype), x).bits);
  }
  return out;
}

/// binary32 numbers of few bits in few binades: their lowest bit is told.
Bits narrow_floats(int lowest, int binades, std::size_t n) {
  std::mt19937 random(static_cast<unsigned>(1000 + lowest));
  Bits out(n);
  for (auto& bits : out) {
    const auto significand = static_cast<double>(1024 + random() % 1024);
    const double shift = static_cast<double>(random() % static_cast<unsigned>(binades));
    const double x = std::ldexp(significand, lowest + static_cast<int>(shift));
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(random() % 9 == 0 ? 0 : -x));
  }
  return out;
}

GradientSums sums_of(const Sample& sample) {
  GradientSums sums;
  for (std::size_t i = 0; i < sample.view().count; ++i) {
    const double x = sample.value(i);
    sums.nan |= std::isnan(x);
    sums.infinity |= std::isinf(x);
    if (!std::isnan(x)) sums.max_abs = std::max(sums.max_abs, std::fabs(x));
    if (std::isfinite(x)) sums.sum_squares += x * x;
  }
  return sums;
}

/// Every kind of tensor there is, at lengths about those of vectors and parts.
Samples every_kind() {
  Samples out;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) out.emplace_back(dtype, all_encodings());
  out.emplace_back(Dtype::f32, boundary_fractions());
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    const Bits values = log_normal(dtype, 140000, 7);
    for (const std::ptrdiff_t n : {0, 1, 7, 8, 15, 16, 17, 1023, 65535, 65536, 65537, 131077}) {
      out.emplace_back(dtype, Bits(values.begin(), values.begin() + n));
    }
    const std::uint32_t sign = dtype == Dtype::f32 ? 0x80000000 : 0x8000;
    const auto infinity = static_cast<std::uint32_t>(format_of(dtype).infinity());
    out.emplace_back(dtype, Bits(1000, 0));
    out.emplace_back(dtype, Bits(1000, sign));
    out.emplace_back(dtype, Bits(1000, infinity));
    out.emplace_back(dtype, Bits(1000, infinity | sign));
    out.emplace_back(dtype, Bits(1000, infinity + 1));
    out.emplace_back(dtype, Bits(1000, (infinity + 1) | sign));
    out.emplace_back(dtype, Bits(1000, 1));  // the least subnormal
    out.emplace_back(dtype, Bits(1000, sign | 3));
  }
  out.emplace_back(Dtype::f32, narrow_floats(-24, 3, 5000));
  out.emplace_back(Dtype::f32, narrow_floats(-24, 30, 5000));
  out.emplace_back(Dtype::f32, narrow_floats(-149, 40, 5000));
  out.emplace_back(Dtype::f32, narrow_floats(100, 17, 5000));
  for (int k = -12; k <= 12; ++k) {  // one element alone decides on the lowest bit
    Bits ones(5000, std::bit_cast<std::uint32_t>(1.0f));
    ones[4096] = std::bit_cast<std::uint32_t>(std::ldexp(0x1.004p0f, k));
    out.emplace_back(Dtype::f32, ones);
  }
  return out;
}

TEST_CASE("tables of every kind of tensor, in one launch", "[cuda][table][gpu]") {
  if (skipped()) return;
  require_same(every_kind());
}

TEST_CASE("tables at every alignment of elements, moments the same", "[cuda][table][gpu]") {
  if (skipped()) return;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    for (const std::size_t n : {std::size_t{37}, std::size_t{70001}}) {
      Samples samples;
      const Bits values = log_normal(dtype, n, 3);
      for (std::size_t offset = 0; offset < 9; ++offset) {
        samples.emplace_back(dtype, values, offset);
      }
      const std::vector<TensorFacts> got = count(samples);
      for (std::size_t i = 0; i < got.size(); ++i) {
        INFO(name_of(dtype) << ", " << n << " elements, offset " << i);
        require_same(samples[i], got[i]);
        REQUIRE(got[i].moments.mean == got[0].moments.mean);
        REQUIRE(got[i].moments.sum_squares == got[0].moments.sum_squares);
      }
    }
  }
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

TEST_CASE("16-bit tensors counted by encodings", "[cuda][table][gpu]") {
  if (skipped()) return;
  Samples samples;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    samples.emplace_back(dtype, all_encodings());
    samples.emplace_back(dtype, log_normal(dtype, 100003, 5), 1);
  }
  samples.emplace_back(Dtype::f16, Bits());
  samples.emplace_back(Dtype::f32, log_normal(Dtype::f32, 100, 5));  // by parts all the same
  samples.emplace_back(Dtype::f16, Bits(3000, 0x8000));
  require_same(samples, {.encodings_from = 0});
}

TEST_CASE("by encodings from a size on, in any order of the tensors", "[cuda][table][gpu]") {
  if (skipped()) return;
  Samples samples;
  for (const std::size_t n : std::array<std::size_t, 4>{10, 1000, 999, 5}) {
    samples.emplace_back(Dtype::f16, log_normal(Dtype::f16, n, 9));
  }
  require_same(samples, {.encodings_from = 1000});
}

TEST_CASE("encodings that wrap their 16 bits around", "[cuda][table][gpu]") {
  if (skipped()) return;
  Samples samples;
  std::mt19937 random(16);
  for (const std::uint32_t other : {0x3C00u, 0xBC00u, 0x8000u, 0x7C00u}) {
    Bits same(200000, 0x3C00);  // 65,536 of one encoding, and more
    for (auto& bits : same) bits = random() % 2 == 0 ? bits : other;
    samples.emplace_back(Dtype::f16, same);
    samples.emplace_back(Dtype::bf16, same, 3);
  }
  for (const std::ptrdiff_t n : {65535, 65536, 65537, 131072}) {
    const Bits values(65536 * 3, 0xBC00);
    samples.emplace_back(Dtype::f16, Bits(values.begin(), values.begin() + n));
  }
  require_same(samples, {.encodings_from = 0});
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

TEST_CASE("more tensors than blocks", "[cuda][table][gpu]") {
  if (skipped()) return;
  require_same(small_tensors(2500));
  require_same(small_tensors(500), {.encodings_from = 0});
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

TEST_CASE("what every step asks: largest, sum of squares, not finite", "[cuda][table][gpu]") {
  if (skipped()) return;
  Samples samples = every_kind();
  for (Sample& sample : small_tensors(1500)) samples.push_back(std::move(sample));
  const Stream stream;
  const std::vector<GradientSums> got = FactsCount(tensors_of(samples), stream.get()).get();
  REQUIRE(got.size() == samples.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("tensor " << i << ", " << name_of(samples[i].view().dtype));
    const GradientSums want = sums_of(samples[i]);
    REQUIRE(got[i].nan == want.nan);
    REQUIRE(got[i].infinity == want.infinity);
    REQUIRE(got[i].max_abs == want.max_abs);
    REQUIRE(are_close(got[i].sum_squares, want.sum_squares, want.sum_squares));
  }
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
  const DeviceTensor wrong = {Dtype::f8_e4m3, nullptr, 1};
  CHECK_THROWS_AS(FactsCount(std::span(&wrong, 1), nullptr), std::invalid_argument);
  if (!device::available()) return;
  CHECK(TableCount(std::span<const DeviceTensor>(), nullptr).get().empty());
  CHECK(FactsCount({}, nullptr).get().empty());
}

}  // namespace test_table
