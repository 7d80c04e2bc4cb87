// SPDX-License-Identifier: Apache-2.0
// Updates counted on the device equal the CPU's in every count. Runs on the emulated device, too.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
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
#include "halfscope/number/convert.hpp"
#include "halfscope/table/update/pair_fast.hpp"
#include "halfscope/table/update/update_cuda.hpp"

namespace test_update {

using namespace halfscope;
using cuda::DeviceTensor;
using cuda::UpdateCount;
using cuda::WeightUpdate;

using Halves = std::vector<std::uint16_t>;
using Floats = std::vector<float>;

template <typename T>
TensorView view_of_all(Dtype dtype, const std::vector<T>& values) {
  return {dtype, reinterpret_cast<const std::byte*>(values.data()), values.size()};
}

/// A weight and its update on the host and on the device, there `offset` elements behind a multiple
/// of 256 bytes.
class Pairs {
 public:
  Pairs(const TensorView& w, const TensorView& u, std::size_t offset = 0)
      : weights_(w, offset), updates_(u, offset) {}

  WeightUpdate on_device() const { return {weights_.tensor(), updates_.tensor()}; }
  void require_same(const UpdateTable& got, const UpdateOptions& options) const {
    const TensorView w = weights_.view(), u = updates_.view();
    const UpdateTable want = count_updates(w, u, options);
    INFO(name_of(w.dtype) << " weights, " << name_of(u.dtype) << " updates, " << w.count);
    REQUIRE(got.counts == want.counts);
    REQUIRE(got.cells == want.cells);
    REQUIRE(got.ratios == want.ratios);
    REQUIRE(got.errors == want.errors);
  }

 private:
  class Tensor {
   public:
    Tensor(const TensorView& t, std::size_t offset)
        : dtype_(t.dtype), count_(t.count), start_(offset * cuda::width_of(t.dtype)) {
      bytes_.resize(start_);
      bytes_.insert(bytes_.end(), t.data, t.data + t.bytes());
      device_ = device::copy_of(bytes_);
    }
    TensorView view() const { return {dtype_, bytes_.data() + start_, count_}; }
    DeviceTensor tensor() const {
      return {dtype_, device_.get() + start_, static_cast<std::int64_t>(count_)};
    }

   private:
    Dtype dtype_;
    std::size_t count_, start_;
    std::vector<std::byte> bytes_;
    std::unique_ptr<std::byte, device::Free> device_;
  };
  Tensor weights_, updates_;
};

/// All in one launch.
void require_same(const std::vector<Pairs>& pairs, const UpdateOptions& options) {
  std::vector<WeightUpdate> list;
  for (const Pairs& one : pairs) list.push_back(one.on_device());
  const Stream stream;
  UpdateCount count(list, options, stream.get());
  const std::vector<UpdateTable> got = count.get();
  REQUIRE(got.size() == pairs.size());
  for (std::size_t i = 0; i < got.size(); ++i) pairs[i].require_same(got[i], options);
}

void require_same(const TensorView& w, const TensorView& u, const UpdateOptions& options) {
  std::vector<Pairs> one;
  one.emplace_back(w, u);
  require_same(one, options);
}

void require_same(const Floats& w, const Floats& u) {
  for (const Format& f : {kBinary16, kBfloat16}) {
    for (const bool distributions : {true, false}) {
      require_same(view_of(w), view_of(u), {.format = f, .distributions = distributions});
    }
  }
}

Halves narrowed(Format f, const Floats& values) {
  Halves out;
  for (const float x : values) out.push_back(static_cast<std::uint16_t>(from_float(f, x).bits));
  return out;
}

/// Of magnitudes log-normal around 2^mean.
Floats log_normal(float mean, float deviation, std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> log2_magnitude(mean, deviation);
  Floats out(n);
  for (float& x : out) x = std::exp2(log2_magnitude(random)) * (random() % 2 == 0 ? 1.0f : -1.0f);
  return out;
}

/// Any encodings of binary32.
Floats random_encodings(std::size_t n, std::uint32_t mask, unsigned seed) {
  std::mt19937 random(seed);
  Floats out(n);
  for (float& x : out) x = std::bit_cast<float>(static_cast<std::uint32_t>(random()) & mask);
  return out;
}

TEST_CASE("updates on the device: log-normal weights and updates", "[cuda][update][gpu]") {
  if (skipped()) return;
  for (const std::size_t n :
       {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{50000}}) {
    require_same(log_normal(-5, 1, n, 1), log_normal(-18.5f, 4, n, 2));
  }
}

TEST_CASE("updates on the device: everything binary32 can hold", "[cuda][update][gpu]") {
  if (skipped()) return;
  require_same(random_encodings(20000, 0xFFFFFFFF, 3), random_encodings(20000, 0xFFFFFFFF, 4));
  require_same(random_encodings(20000, 0x80FFFFFF, 5), random_encodings(20000, 0x80FFFFFF, 6));
  require_same(log_normal(0, 60, 20000, 7), log_normal(0, 60, 20000, 8));
}

TEST_CASE("updates on the device: around half the way to the neighbours", "[cuda][update][gpu]") {
  if (skipped()) return;
  Floats w, u;
  for (std::uint32_t bits = 0; bits < 0x7C00; bits += 7) {
    const auto here = static_cast<float>(to_double(kBinary16, bits));
    const auto next = static_cast<float>(to_double(kBinary16, bits + 1));
    const float half_way = std::isinf(next) ? 16.0f : (next - here) / 2;
    for (const float x :
         {half_way, std::nextafter(half_way, 0.0f), std::nextafter(half_way, 1e9f)}) {
      for (const float sign : {1.0f, -1.0f}) {
        w.push_back(here);
        u.push_back(sign * x);
      }
    }
  }
  require_same(w, u);
}

TEST_CASE("updates on the device: special values", "[cuda][update][gpu]") {
  if (skipped()) return;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Floats specials = {0.0f,      -0.0f,     NAN,       kInfinity,       -kInfinity, 65504.0f,
                           65519.0f,  65520.0f,  1.0f,      -1.0f,           0x1p-24f,   0x1p-25f,
                           0x1p-126f, 0x1p-149f, 3e38f,     -3e38f,          0x1p-133f,  0x1p-134f,
                           0x1p14f,   0x1p-103f, 0x1p-104f, 0x1.000002p-110f};
  Floats w, u;
  for (const float x : specials) {
    for (const float y : specials) {
      w.push_back(x);
      u.push_back(y);
    }
  }
  require_same(w, u);
}

TEST_CASE("updates on the device: errors that binary32 rounds to the update times a power of two",
          "[cuda][update][gpu]") {
  if (skipped()) return;
  // As in tests/table/update/test_update_table.cpp.
  require_same(Floats{-0x1.8p-23f, -0x1.8p-23f, -0x1.4p-22f, -0x1.4p-22f},
               Floats{0x1.ffdffep+13f, 0x1.ffe002p+13f, 0x1.ffdffep+13f, 0x1.ffe002p+13f});
  require_same(Floats{0x1.02p-30f, -0x1.fcp-30f, -0x1.02p-29f, 0x1.fcp-28f},
               Floats{0x1.00401p+0f, 0x1.ff802p+0f, 0x1.ff802p+0f, 0x1.00804p+0f});
}

TEST_CASE("updates on the device: every dtype of both", "[cuda][update][gpu]") {
  if (skipped()) return;
  const Floats w = log_normal(-4, 3, 3000, 9), u = log_normal(-12, 6, 3000, 10);
  const Halves w16 = narrowed(kBinary16, w), wb = narrowed(kBfloat16, w);
  const Halves u16 = narrowed(kBinary16, u), ub = narrowed(kBfloat16, u);
  const std::vector<TensorView> weights = {view_of(w), view_of_all(Dtype::f16, w16),
                                           view_of_all(Dtype::bf16, wb)};
  const std::vector<TensorView> updates = {view_of(u), view_of_all(Dtype::f16, u16),
                                           view_of_all(Dtype::bf16, ub)};
  for (const Format& f : {kBinary16, kBfloat16}) {
    for (const TensorView& x : weights) {
      for (const TensorView& y : updates) require_same(x, y, {.format = f});
    }
  }
}

TEST_CASE("updates of many weights in one launch", "[cuda][update][gpu]") {
  if (skipped()) return;
  std::mt19937 random(21);
  std::vector<Floats> weights, updates;
  std::vector<Halves> narrow;
  for (unsigned i = 0; i < 650; ++i) {  // more than a launch has blocks
    const std::size_t n = i % 9 == 0 ? 0 : i % 500 == 13 ? 70000 + i : random() % 50;
    weights.push_back(log_normal(-5, 2, n, i));
    updates.push_back(i % 7 == 0 ? random_encodings(n, 0xFFFFFFFF, i) : log_normal(-17, 5, n, i));
    narrow.push_back(narrowed(i % 2 == 0 ? kBinary16 : kBfloat16, weights.back()));
  }
  std::vector<Pairs> pairs;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TensorView w = i % 3 == 0 ? view_of_all(i % 2 == 0 ? Dtype::f16 : Dtype::bf16, narrow[i])
                                    : view_of(weights[i]);
    pairs.emplace_back(w, view_of(updates[i]), i % 5);
  }
  require_same(pairs, {.format = kBinary16, .distributions = true});
  for (const Format& f : {kBinary16, kBfloat16}) {
    require_same(pairs, {.format = f, .distributions = false});
  }
  pairs.erase(pairs.begin() + 50, pairs.end());  // a weight has 2.3 MB of cells
  require_same(pairs, {.format = kBfloat16, .distributions = true});
  require_same(std::vector<Pairs>(), {});
}

TEST_CASE("the fast outcome of a pair is the exact one", "[cuda][update]") {
  std::mt19937 random(11);
  const auto compare = []<class W>(W, float weight, float u) {
    const std::uint16_t w16 = W::narrowed(weight);
    const float w = W::widened(w16);
    if (!fast::is_common<W>(w, u)) return;
    const PairOutcome got = fast::outcome<W>(w, u);
    const PairOutcome want =
        outcome_of(W::kFormat, w16, recorded_update(kBinary32, std::bit_cast<std::uint32_t>(u)));
    INFO(weight << " and " << u);
    REQUIRE(got.half == want.half);
    REQUIRE(got.fused == want.fused);
    REQUIRE(got.rule == want.rule);
    REQUIRE(got.update_binade == want.update_binade);
    REQUIRE(got.weight_binade == want.weight_binade);
    REQUIRE(got.ratio == want.ratio);
    REQUIRE(got.error == want.error);
  };
  for (int i = 0; i < 20000; ++i) {
    const int e = static_cast<int>(random() % 50) - 36;
    const float w = std::ldexp(static_cast<float>(random() % 4096) / 1024, e);
    const float u = std::ldexp(1 + static_cast<float>(random() % (1 << 23)) / (1 << 23),
                               e + 3 - static_cast<int>(random() % 30));
    compare(fast::Binary16(), w, random() % 2 == 0 ? u : -u);
    compare(fast::Bfloat16(), w, random() % 2 == 0 ? u : -u);
  }
}

TEST_CASE("updates that are refused, device or not", "[cuda][update]") {
  const auto message = [](const DeviceTensor& w, const DeviceTensor& u,
                          const UpdateOptions& options) -> std::string {
    try {
      const WeightUpdate pair = {w, u};
      UpdateCount(std::span(&pair, 1), options, nullptr);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  const float numbers[2] = {};
  const DeviceTensor one = {Dtype::f32, numbers, 1}, two = {Dtype::f32, numbers, 2};
  CHECK(message(one, two, {}) == "updates: 1 weights and 2 updates, expected as many");
  CHECK(message({Dtype::f64, numbers, 1}, one, {}) ==
        "UpdateCount: elements of dtype F64, expected F16, BF16 or F32");
  CHECK(message(one, one, {.format = kBinary32}) ==
        "updates: weights of 32 bits, precision 24; expected binary16 or bfloat16");
}

}  // namespace test_update
