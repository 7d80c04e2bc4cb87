// SPDX-License-Identifier: Apache-2.0
// Where updates come from, on which storage, instruction set and number of threads.
#include <tbb/global_control.h>

#include <bit>
#include <catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <span>

#include "halfscope/number/convert.hpp"
#include "halfscope/table/update/update_table.hpp"
#include "table/update_judge.hpp"
#include "tests/vector_target.hpp"

namespace test_update_sources {

using namespace halfscope;

#ifdef NDEBUG
constexpr std::size_t kPairs = 20000;
#else
constexpr std::size_t kPairs = 1500;
#endif

/// Numbers of `digits` bits and about 2^center.
std::vector<double> numbers(std::uint32_t seed, int center, int digits, std::size_t n = kPairs) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> exponent(center, 3);
  std::vector<double> values(n);
  for (double& x : values) {
    const auto significand = static_cast<std::int64_t>(random() >> (64 - digits)) | 1;
    const int e = static_cast<int>(exponent(random)) - digits;
    x = std::ldexp(static_cast<double>(random() % 2 == 0 ? significand : -significand), e);
    if (random() % 32 == 0) x = 0;
  }
  return values;
}

/// Elements of one dtype; what they hold then is in `values`.
struct Tensor {
  Tensor(Dtype type, const std::vector<double>& from) : dtype(type), values(from) {
    const Format f = format_of(type);
    const auto width = static_cast<std::size_t>(f.width / 8);
    bytes.resize(from.size() * width + 1);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::uint64_t bits = from_double(f, from[i]).bits;
      std::memcpy(bytes.data() + 1 + i * width, &bits, width);  // at an odd address
      values[i] = to_double(f, bits);
    }
  }
  TensorView view() const { return {dtype, bytes.data() + 1, values.size()}; }

  Dtype dtype;
  std::vector<double> values;
  std::vector<std::byte> bytes;
};

constexpr Dtype kDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64};
const judge::Far& judge16() {
  static const judge::Far judge(oracle::layout("binary16"));
  return judge;
}

TEST_CASE("updates: every dtype of weights and of updates, unaligned") {
  for (const Dtype weight_type : kDtypes) {
    for (const Dtype update_type : kDtypes) {
      const Tensor w(weight_type, numbers(1, -4, 53, kPairs / 8 + 3));
      const Tensor u(update_type, numbers(2, -14, 53, kPairs / 8 + 3));
      UpdateTable expected;
      for (std::size_t i = 0; i < w.values.size(); ++i) {
        judge16().add(expected, w.values[i], u.values[i]);
      }
      INFO(name_of(weight_type) << " and " << name_of(update_type));
      CHECK(count_updates(w.view(), u.view()) == expected);
    }
  }
}

TEST_CASE("updates: SGD, the exact product rounded once, and fused with three roundings") {
  const Tensor w(Dtype::f32, numbers(3, -4, 24, kPairs / 4));
  const Tensor g(Dtype::f32, numbers(4, -6, 24, kPairs / 4));
  for (const double lr : {0.1, 1e-3, 0.0625, -0.5}) {
    for (const double scale : {1.0, 1024.0, 0x1p-5}) {
      UpdateTable expected;
      for (std::size_t i = 0; i < w.values.size(); ++i) {
        judge16().add(expected, w.values[i], g.values[i] / scale, static_cast<float>(lr));
      }
      INFO(lr << " / " << scale);
      CHECK(count_sgd_updates(w.view(), g.view(), lr, scale) == expected);
    }
  }
}

TEST_CASE("updates: SGD with a scale that is no power of two divides in binary32") {
  const Tensor w(Dtype::f32, numbers(5, -4, 24)), g(Dtype::f32, numbers(6, -2, 24));
  UpdateTable expected;
  for (std::size_t i = 0; i < w.values.size(); ++i) {
    const float unscaled = static_cast<float>(g.values[i]) / 1000.0f;  // the processor's
    judge16().add(expected, w.values[i], double{unscaled}, 0.1f);
  }
  CHECK(count_sgd_updates(w.view(), g.view(), 0.1, 1000) == expected);
}

TEST_CASE("updates: SGD's fused sum is rounded to binary32 first") {
  const Tensor w(Dtype::f32, {1}), g(Dtype::f32, {-0x1.000002p-11});  // 1 - g: above a tie
  CHECK(count_sgd_updates(w.view(), g.view(), 1, 1).counts.fused == UpdateOutcomes{.swamped = 1});
}

TEST_CASE("updates: SGD where products leave binary32") {
  const std::vector<double> w = {1, 1, 0, 0x1p-24}, g = {0x1p-100, 0x1p120, 0x1p-149, 0};
  const UpdateCounts counts =
      count_sgd_updates(Tensor(Dtype::f32, w).view(), Tensor(Dtype::f32, g).view(), 0x1p-60, 1)
          .counts;
  CHECK(counts.half == UpdateOutcomes{.underflow = 2, .overflow = 1});
  CHECK(counts.fused == UpdateOutcomes{.underflow = 2, .overflow = 1});
  CHECK(counts.zero == 1);
  CHECK(count_sgd_updates(Tensor(Dtype::f32, w).view(), Tensor(Dtype::f32, g).view(), 0, 1)
            .counts.zero == 4);
}

TEST_CASE("updates: differences of recorded weights") {
  for (const Dtype type : kDtypes) {
    std::vector<double> moved = numbers(7, -4, 24);
    const Tensor before(type, moved);
    const std::vector<double> updates = numbers(8, -14, 24);
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = before.values[i] + updates[i];
    const Tensor after(type, moved);
    UpdateTable expected;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      judge16().add(expected, before.values[i], after.values[i] - before.values[i]);
    }
    INFO(name_of(type));
    CHECK(expected.counts.zero > 0);
    CHECK(count_differences(before.view(), after.view()) == expected);
  }
}

TEST_CASE("updates: the same on every instruction set") {
  const Tensor w(Dtype::f32, numbers(9, -4, 24)), u(Dtype::f32, numbers(10, -14, 24));
  for (const Format format : {kBinary16, kBfloat16}) {
    const auto on = [&](const std::string& target) {
      const OnTarget only(target);
      return count_updates(w.view(), u.view(), {.format = format});
    };
    const UpdateTable plain = on(vector_targets().back());
    for (const std::string& target : targets()) {
      INFO(target);
      CHECK(on(target) == plain);
    }
  }
}

TEST_CASE("updates: the same on any number of threads, in any split, counts alone or not") {
  const tbb::global_control allow(tbb::global_control::max_allowed_parallelism, 4);
  const Tensor w(Dtype::f32, numbers(11, -4, 24, 1 << 20));
  const Tensor u(Dtype::f32, numbers(12, -14, 24, 1 << 20));
  const UpdateTable one = count_updates(w.view(), u.view(), {.threads = 1});
  CHECK(count_updates(w.view(), u.view(), {.threads = 3}) == one);
  CHECK(count_updates(w.view(), u.view()) == one);
  CHECK(count_updates(w.view(), u.view(), {.distributions = false}).counts == one.counts);
  UpdateTable parts;
  for (const auto& [first, end] : {std::pair{0, 777}, {777, 300000}, {300000, 1 << 20}}) {
    const auto n = static_cast<std::size_t>(end - first);
    const std::size_t offset = 4 * static_cast<std::size_t>(first);
    parts += count_updates({Dtype::f32, w.view().data + offset, n},
                           {Dtype::f32, u.view().data + offset, n});
  }
  CHECK(parts == one);
}

TEST_CASE("updates: weights and updates 2^28 bytes apart") {
  constexpr std::size_t kApart = std::size_t{1} << 26, kCount = 5003;  // elements
  const auto memory = std::make_unique_for_overwrite<float[]>(kApart + kCount);
  const Tensor w(Dtype::f32, numbers(13, -4, 24, kCount));
  const Tensor u(Dtype::f32, numbers(14, -14, 24, kCount));
  UpdateTable expected;
  for (std::size_t i = 0; i < kCount; ++i) {
    memory[i] = static_cast<float>(w.values[i]);
    memory[kApart + i] = static_cast<float>(u.values[i]);
    judge16().add(expected, w.values[i], u.values[i]);
  }
  CHECK(count_updates(view_of(std::span(memory.get(), kCount)),
                      view_of(std::span(memory.get() + kApart, kCount))) == expected);
}

TEST_CASE("updates: what makes no sense is refused") {
  const Tensor two(Dtype::f32, {1, 2}), three(Dtype::f32, {1, 2, 3});
  const Tensor narrow(Dtype::f8_e4m3, {1, 2});
  CHECK_THROWS_AS(count_updates(two.view(), three.view()), std::invalid_argument);
  CHECK_THROWS_AS(count_updates(two.view(), narrow.view()), std::invalid_argument);
  CHECK_THROWS_AS(count_updates(two.view(), two.view(), {.format = kFloat8E5M2}),
                  std::invalid_argument);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [lr, scale] :
       {std::pair{nan, 1.0}, {1e300, 1.0}, {1.0, 0.0}, {1.0, -2.0}, {1.0, nan}}) {
    CHECK_THROWS_AS(count_sgd_updates(two.view(), two.view(), lr, scale), std::invalid_argument);
  }
  CHECK(count_updates({}, {}) == UpdateTable{});
}

}  // namespace test_update_sources
