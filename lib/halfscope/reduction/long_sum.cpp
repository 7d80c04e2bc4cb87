// SPDX-License-Identifier: Apache-2.0
// One sum, addend by addend. Rounds through binary32; reduce.cpp explains why that is exact.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "halfscope/array/array.hpp"
#include "halfscope/array/element.hpp"
#include "halfscope/array/environment.hpp"
#include "halfscope/reduction/addition.hpp"
#include "halfscope/reduction/check.hpp"
#include "halfscope/reduction/error.hpp"
#include "halfscope/reduction/reduce.hpp"

namespace halfscope::reduction {
namespace {

float rounded(Format f, float x) {
  if (f == kBinary32) return x;
  const Rounded r = element::quantise(f, std::bit_cast<std::uint32_t>(x));
  return std::bit_cast<float>(static_cast<std::uint32_t>(r.bits));
}

/// Addends as passed in and as rounded to the format, with their common properties.
class Piece {
 public:
  Piece(Format f, std::span<const float> given)
      : given_(given), taken_(given.begin(), given.end()) {
    if (f != kBinary32) quantise(f, taken_, {.threads = 1});
    constexpr std::size_t kLanes = 16;
    std::array<float, kLanes> low{}, high{};
    std::array<std::uint32_t, kLanes> nonzero{}, flushed{}, nonfinite{}, nan{};
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      const std::size_t lane = i % kLanes;
      const float x = taken_[i];
      low[lane] = x < low[lane] ? x : low[lane];
      high[lane] = x > high[lane] ? x : high[lane];
      nonzero[lane] += x != 0 ? 1u : 0u;
      flushed[lane] += x == 0 && given_[i] != 0 ? 1u : 0u;
      nonfinite[lane] += is_finite(given_[i]) ^ 1u;
      nan[lane] += x != x ? 1u : 0u;
    }
    least_ = *std::min_element(low.begin(), low.end());
    most_ = *std::max_element(high.begin(), high.end());
    const auto sum = [](const auto& lanes) {
      return std::accumulate(lanes.begin(), lanes.end(), std::uint64_t{0});
    };
    nonzero_ = sum(nonzero);
    flushed_ = sum(flushed);
    all_finite_ = sum(nonfinite) == 0;
    has_nan_ = sum(nan) != 0;
  }

  std::span<const float> given() const { return given_; }
  std::span<const float> taken() const { return taken_; }
  /// Least and most: over the rounded addends and zero.
  float least() const { return least_; }
  float most() const { return most_; }
  std::uint64_t nonzero() const { return nonzero_; }
  std::uint64_t flushed() const { return flushed_; }
  bool all_finite() const { return all_finite_; }
  bool has_nan() const { return has_nan_; }

 private:
  std::span<const float> given_;
  std::vector<float> taken_;
  float least_ = 0, most_ = 0;
  std::uint64_t nonzero_ = 0, flushed_ = 0;
  bool all_finite_ = true, has_nan_ = false;
};

class Chain {
 public:
  Chain(Format f, Order order, std::size_t addends, const AddendsFrom& from)
      : format_(f), order_(order), count_(addends), from_(from) {}

  LongSum sum() {
    const bool chain = order_ == Order::sequential;
    if (chain) {
      add_in_pieces();
    } else {
      visit(
          order_, count_, [&](std::size_t i) { leaf(i); }, [&] { add(); });
    }
    LongSum out;
    out.result = stack_.back();
    out.exact = high_ + low_;
    out.facts = facts();
    if (chain && is_finite(out.result) && idle_nonzero_ != 0) out.stalled_at = idle_from_;
    return out;
  }

 private:
  void leaf(std::size_t i) {
    const std::size_t start = order_ == Order::ring ? Ring{1, count_}.start(0) : 0;
    const std::size_t place = (start + i) % count_;
    if (place - held_from_ >= held_.size()) {  // not held; a lower place wraps
      held_ = from_(place);
      held_from_ = place;
    }
    const float given = held_[place - held_from_];
    take(i, given, rounded(format_, given));
  }
  void take(std::size_t i, float given, float taken) {
    nonfinite_ |= is_finite(given) ^ 1u;
    flushed_ += given != 0 && taken == 0 ? 1u : 0u;
    add_exactly(high_, low_, static_cast<double>(taken));
    stack_.push_back(taken);
    at_ = i;
  }
  void add() {
    const float b = stack_.back();
    stack_.pop_back();
    const float a = stack_.back(), result = rounded(format_, a + b);
    lost_ += is_lost(a, b, result);
    stack_.back() = result;
    if (result != a) {
      idle_from_ = at_ + 1;
      idle_nonzero_ = 0;
    } else if (b != 0) {
      ++idle_nonzero_;
    }
  }

  void add_in_pieces() {
    constexpr std::size_t kPiece = 2048;
    for (std::size_t first = 0; first < count_;) {
      const std::span<const float> held = from_(first);
      const Piece piece(format_, held.first(std::min({held.size(), kPiece, count_ - first})));
      if (first > 0 && changes_nothing(piece)) {
        count_lost(piece);
      } else {
        for (std::size_t i = 0; i < piece.taken().size(); ++i) {
          take(first + i, piece.given()[i], piece.taken()[i]);
          if (stack_.size() > 1) add();
        }
      }
      first += piece.taken().size();
    }
  }

  /// Rounding is monotonic: if neither the least nor the largest addend changes the sum, none does.
  bool changes_nothing(const Piece& piece) const {
    const float a = stack_.back();
    if (a == 0) return piece.nonzero() == 0 && !std::signbit(a);  // -0 + 0 changes the sum to +0
    if (std::isnan(a)) return true;
    return !piece.has_nan() && rounded(format_, a + piece.least()) == a &&
           rounded(format_, a + piece.most()) == a;
  }

  void count_lost(const Piece& piece) {
    nonfinite_ |= piece.all_finite() ? 0u : 1u;
    flushed_ += piece.flushed();
    idle_nonzero_ += piece.nonzero();
    if (is_finite(stack_.back()) != 0) lost_ += piece.nonzero();
    if (piece.nonzero() == 0) return;
    for (const float x : piece.taken()) add_exactly(high_, low_, static_cast<double>(x));
  }

  Facts facts() const {
    Facts facts;
    facts.nonfinite = nonfinite_;
    if (nonfinite_ != 0) return facts;
    facts.elements = 1;
    facts.flushed = flushed_;
    facts.additions = count_ - 1;
    facts.lost = lost_;
    facts.overflow = is_finite(stack_.back()) ^ 1u;
    if (facts.overflow == 0) facts.add(measure(stack_.back(), high_, low_, ulp_rule(format_)));
    return facts;
  }

  Format format_;
  Order order_;
  std::size_t count_;
  const AddendsFrom& from_;
  std::span<const float> held_;  ///< the addends from held_from_ on
  std::size_t held_from_ = 0;
  std::vector<float> stack_;
  double high_ = 0, low_ = 0;
  std::uint32_t nonfinite_ = 0;
  std::uint64_t flushed_ = 0, lost_ = 0;
  // at_: the current addend. idle_from_: the addend from which on the sum has not changed;
  // idle_nonzero_: number of nonzero addends since.
  std::size_t at_ = 0, idle_from_ = 1, idle_nonzero_ = 0;
};

}  // namespace

LongSum sum(Format f, std::size_t addends, const AddendsFrom& from, Order order) {
  check_sum(f, addends);
  const FloatEnvironment environment(RoundingControl::nearest);
  return Chain(f, order, addends, from).sum();
}

LongSum sum(Format f, std::span<const float> addends, Order order) {
  return sum(
      f, addends.size(), [&](std::size_t i) { return addends.subspan(i); }, order);
}

}  // namespace halfscope::reduction
