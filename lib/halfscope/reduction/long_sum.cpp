// SPDX-License-Identifier: Apache-2.0
// One sum, addend by addend. Rounding by way of binary32: reduce.cpp.
#include <bit>
#include <cstdint>
#include <vector>

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

class Chain {
 public:
  Chain(Format f, Order order, std::span<const float> addends)
      : format_(f), order_(order), addends_(addends) {}

  LongSum sum() {
    LongSum out;
    visit(
        order_, addends_.size(), [&](std::size_t i) { leaf(i); }, [&] { add(); });
    out.result = stack_.back();
    out.exact = high_ + low_;
    out.facts = facts();
    const bool chain = order_ == Order::sequential;
    if (chain && is_finite(out.result) && idle_nonzero_ != 0) out.stalled_at = idle_from_;
    return out;
  }

 private:
  void leaf(std::size_t i) {
    const std::size_t start = order_ == Order::ring ? Ring{1, addends_.size()}.start(0) : 0;
    const float given = addends_[(start + i) % addends_.size()], taken = rounded(format_, given);
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

  Facts facts() const {
    Facts facts;
    facts.nonfinite = nonfinite_;
    if (nonfinite_ != 0) return facts;
    facts.elements = 1;
    facts.flushed = flushed_;
    facts.additions = addends_.size() - 1;
    facts.lost = lost_;
    facts.overflow = is_finite(stack_.back()) ^ 1u;
    if (facts.overflow == 0) facts.add(measure(stack_.back(), high_, low_, ulp_rule(format_)));
    return facts;
  }

  Format format_;
  Order order_;
  std::span<const float> addends_;
  std::vector<float> stack_;
  double high_ = 0, low_ = 0;
  std::uint32_t nonfinite_ = 0;
  std::uint64_t flushed_ = 0, lost_ = 0;
  // The addend of a chain from which on nothing changes, and how many of those are not zero.
  std::size_t at_ = 0, idle_from_ = 1, idle_nonzero_ = 0;
};

}  // namespace

LongSum sum(Format f, std::span<const float> addends, Order order) {
  check_sum(f, addends.size());
  const FloatEnvironment environment(RoundingControl::nearest);
  return Chain(f, order, addends).sum();
}

}  // namespace halfscope::reduction
