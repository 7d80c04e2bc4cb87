// SPDX-License-Identifier: Apache-2.0
// One update of one weight, exactly: what the passes over tensors are measured by, and what they
// call for the pairs that vectors do not take. Internal to table/. docs/numerics.md, "Swamped
// updates".
#pragma once

#include <cstdint>
#include <optional>

#include "halfscope/number/convert.hpp"
#include "halfscope/table/update_table.hpp"

namespace halfscope {

/// An update as a real number, and as arithmetic in binary32 holds it.
struct Update {
  Unpacked exact;
  std::uint64_t binary32;
};

/// A recorded update: an encoding of format `from`.
Update recorded_update(Format from, std::uint64_t bits);

/// Plain SGD's -lr * g / scale. `lr`, an encoding of binary32, is finite.
class SgdStep {
 public:
  /// Throws std::invalid_argument where lr is not finite in binary32, or scale not positive and
  /// finite.
  SgdStep(double lr, double scale);
  Update update(Format from, std::uint64_t gradient) const;
  std::uint64_t rate() const { return rate_; }  ///< RN32(lr)
  bool scale_is_one() const { return scale_is_one_; }

 private:
  Unpacked unscaled(Format from, std::uint64_t gradient) const;

  std::uint64_t rate_;
  Unpacked scale_;
  bool scale_is_power_of_two_, scale_is_one_;
};

enum class Outcome : std::uint8_t { underflow, swamped, applied, exact, overflow };

/// Of a finite nonzero update and a finite weight.
struct PairOutcome {
  Outcome half, fused;
  bool rule;                 ///< |w16| > 2^p |u|
  int update_binade;         ///< floor(log2 |u|)
  std::optional<int> ratio;  ///< floor(log2(|u| / |w16|)); none for a zero weight
  int weight_binade;         ///< UpdateTable::kZeroWeight for a zero weight
  std::optional<int> error;  ///< floor(log2(relative error)), of `half` where it is applied
};

/// w16: a finite encoding of f. u.exact.kind is finite.
PairOutcome outcome_of(Format f, std::uint64_t w16, const Update& u);

/// Counts one pair, whatever it is.
void add_pair(UpdateTable& table, Format f, std::uint64_t w16, const Update& u, bool distributions);

/// |x|, x finite: floor(log2 |x|) and the significand with its leading bit at bit 63.
struct Leading {
  int binade;
  std::uint64_t significand;

  friend constexpr auto operator<=>(const Leading&, const Leading&) = default;
};
constexpr Leading leading_of(const Unpacked& x) {
  const int width = detail::bit_width(x.significand);
  return {x.exponent + width - 1, x.significand << (64 - width)};
}

/// Throws std::invalid_argument unless f is binary16 or bfloat16.
void require_weight_format(Format f);

}  // namespace halfscope
