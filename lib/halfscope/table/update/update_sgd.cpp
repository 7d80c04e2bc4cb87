// SPDX-License-Identifier: Apache-2.0
// README.md in this folder, "SGD's pairs", shows why binary64 suffices.
#include "halfscope/table/update/update_sgd.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace halfscope {
namespace {

constexpr std::uint64_t kFraction64 = (std::uint64_t{1} << 52) - 1;
constexpr int kBias = 1023;

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }
/// The exponent field: floor(log2 |x|) + kBias for a normal x.
int field(double x) { return static_cast<int>(bits_of(x) >> 52 & 0x7FF); }

/// Rounds to p bits, ties to even: (x + M) - M, where M's last place is the last one to keep.
template <int kPrecision, int kMinExponent>
double rounded(double x) {
  constexpr int kUp = 53 - kPrecision;
  const int e = std::max(field(x), kMinExponent + kBias) + kUp;
  const auto magic =
      std::bit_cast<double>(static_cast<std::uint64_t>(e) << 52 | std::uint64_t{1} << 51);
  return (x + magic) - magic;
}

/// The results of one pair.
struct Pair {
  double w16, u;
  double h;       ///< RN(w16 + RN(u))
  double s, low;  ///< w16 + u = s + low, exactly
  bool underflow, lost, exact, fused_lost, fused_exact, rule;
};

template <int kPrecision, int kMinExponent>
Pair pair_of(double w, double u) {
  const auto round = [](double x) { return rounded<kPrecision, kMinExponent>(x); };
  Pair p{};
  p.w16 = round(w);
  p.u = u;
  const double u16 = round(u);
  p.h = round(p.w16 + u16);
  p.s = p.w16 + u;
  const double b = p.s - p.w16;  // Knuth's TwoSum
  p.low = (p.w16 - (p.s - b)) + (u - b);
  // A sum of two binary32 numbers: rounding to binary64 and then binary32 is as rounding once.
  const double u32 = static_cast<float>(u);
  const double fused = round(static_cast<float>(p.w16 + u32));
  p.underflow = u16 == 0;
  p.lost = p.h == p.w16;
  p.exact = p.low == 0 && p.h == p.s;
  p.fused_lost = fused == p.w16;
  p.fused_exact = p.low == 0 && fused == p.s;
  p.rule = std::fabs(p.w16) * std::ldexp(1.0, -kPrecision) > std::fabs(u);
  return p;
}

void add(const Pair& p, PairSums& sums) {
  ++sums.live;
  sums.underflow += p.underflow;
  sums.lost += p.lost;
  sums.exact += p.exact;
  sums.fused_lost += p.fused_lost;
  sums.fused_exact += p.fused_exact;
  sums.rule += p.rule;
}

/// floor(log2(|h - w16 - u| / |u|)) + kErrorBias. h - s is exact. The rounding error of subtracting
/// `low` matters only if the significands are equal.
std::uint32_t error_bin(const Pair& p) {
  const double difference = p.h - p.s;
  const double error = difference - p.low;
  const std::uint64_t fe = bits_of(error) & kFraction64, fu = bits_of(p.u) & kFraction64;
  bool below = fe < fu;
  if (fe == fu) {
    const double rest = (difference - error) - p.low;
    below = rest != 0 && (rest < 0) != (error < 0);
  }
  return static_cast<std::uint32_t>(field(error) - field(p.u) + kErrorBias - (below ? 1 : 0));
}

std::uint32_t cell_of(const Pair& p) {
  constexpr int kToColumn = kFieldBias - kBias;
  const bool less = (bits_of(p.u) & kFraction64) < (bits_of(p.w16) & kFraction64);
  const int row = p.w16 == 0 ? 0 : field(p.w16) + kToColumn;
  return static_cast<std::uint32_t>(row) * kUpdateRow +
         4 * static_cast<std::uint32_t>(field(p.u) + kToColumn) + 2 * less + p.lost;
}

/// Uses several tables in turn, so that an addition does not wait for the last one.
void count_bins(const Pair& p, std::size_t k, PairScratch& scratch) {
  ++scratch.cells[k % kCellTables][cell_of(p)];
  if (!p.lost && !p.exact) ++scratch.errors[k % kErrorTables][error_bin(p)];
}

float load(const std::byte* data, std::size_t k) {
  float x;
  std::memcpy(&x, data + 4 * k, sizeof x);
  return x;
}

constexpr double kEnd = 1 << kEndBinade;

template <int kMinExponent>
bool is_common_weight(double w) {
  const double least = kMinExponent < kFirstWeight ? std::ldexp(1.0, kFirstWeight) : 0;
  return w == 0 || (std::fabs(w) >= least && std::fabs(w) <= kEnd);
}

/// Returns false for a zero gradient, which is no update.
bool is_common_update(double gradient, double u) {
  constexpr double kLeast = std::numeric_limits<float>::min();
  constexpr double kMost = std::numeric_limits<float>::max();
  const double g = std::fabs(gradient), magnitude = std::fabs(u);
  return g > kLeast && g <= kMost && magnitude >= std::ldexp(1.0, kFirstSgdUpdate) &&
         magnitude <= kEnd;
}

/// unscaled(g) returns g'.
template <int kPrecision, int kMinExponent, typename Unscaled>
void count_block(const std::byte* weights, const std::byte* gradients, std::size_t n, double rate,
                 bool distributions, const Unscaled& unscaled, PairScratch& scratch) {
  PairSums sums;
  scratch.rare_count = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const double w = load(weights, k), g = load(gradients, k);
    const double gradient = unscaled(g), u = -(rate * gradient);
    const bool weight = is_common_weight<kMinExponent>(w);
    if (weight && g == 0) continue;
    if (!weight || !is_common_update(gradient, u)) {
      scratch.rare[scratch.rare_count++] = static_cast<std::uint32_t>(k);
      continue;
    }
    const Pair pair = pair_of<kPrecision, kMinExponent>(w, u);
    add(pair, sums);
    if (distributions) count_bins(pair, k, scratch);
  }
  PairSums& total = scratch.sums;
  total.live += sums.live;
  total.underflow += sums.underflow;
  total.lost += sums.lost;
  total.exact += sums.exact;
  total.fused_lost += sums.fused_lost;
  total.fused_exact += sums.fused_exact;
  total.rule += sums.rule;
  scratch.has_bins |= distributions;
}

/// NaN: all pairs with a nonzero update are left to the scalar code.
double unknown(double) { return std::numeric_limits<double>::quiet_NaN(); }

}  // namespace

SgdBlock::SgdBlock(Format f, float rate, double scale) : format_(f), rate_(rate), scale_(scale) {
  int exponent = 0;
  is_power_of_two_ = std::frexp(scale, &exponent) == 0.5;
  is_binary32_ = scale >= double{std::numeric_limits<float>::min()} &&
                 scale <= double{std::numeric_limits<float>::max()} &&
                 double{static_cast<float>(scale)} == scale;
}

void SgdBlock::count(const std::byte* weights, const std::byte* gradients, std::size_t n,
                     bool distributions, PairScratch& scratch) const {
  const auto run = [&](const auto& unscaled) {
    (format_ == kBfloat16
         ? count_block<8, -126, std::decay_t<decltype(unscaled)>>
         : count_block<11, -14, std::decay_t<decltype(unscaled)>>)(weights, gradients, n, rate_,
                                                                   distributions, unscaled,
                                                                   scratch);
  };
  if (is_power_of_two_) {
    // Exact: is_common_update() rejects quotients that are not normal binary32 numbers.
    run([scale = scale_](double g) { return g / scale; });
  } else if (is_binary32_) {
    // A quotient of two binary32 numbers: rounding to binary64 and then binary32 is as rounding
    // once.
    run([scale = scale_](double g) { return double{static_cast<float>(g / scale)}; });
  } else {
    run(unknown);
  }
}

}  // namespace halfscope
