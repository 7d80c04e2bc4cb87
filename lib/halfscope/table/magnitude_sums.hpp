// SPDX-License-Identifier: Apache-2.0
// Exact sums of magnitudes and of squares, divided as a binade table is: how much of a tensor's L1
// and L2 mass lies below a boundary.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "halfscope/table/boundary.hpp"
#include "halfscope/table/count.hpp"

namespace halfscope {

/// Two bounds of a number; equal where it is known to the last bit of a binary64.
struct Bounds {
  double low = 0, high = 0;
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

/// L1: sum of magnitudes. L2: here the sum of squares, whose share is what a norm loses.
struct MassShare {
  Bounds l1, l2;
};

/// Sums over finite nonzero values by (binade, segment between cuts), as whole multiples of a power
/// of two: nothing is rounded, and sums add in any order to the same bits.
class MagnitudeSums {
 public:
  explicit MagnitudeSums(std::vector<std::uint64_t> cuts = standard_cuts());

  void add(const TensorView& tensor);
  /// Both have the same cuts. `log2_factor`: the other's values are multiplied by 2^log2_factor.
  void merge(const MagnitudeSums& other, int log2_factor = 0);

  /// The share of the mass below m; bounds where m lies inside a segment. {1, 1} of nothing is 0.
  MassShare share_below(Magnitude m) const;

 private:
  struct Sums {
    std::array<std::uint64_t, 2> magnitudes{};  ///< 128 bits, in units of 2^(exponent - 52)
    std::array<std::uint64_t, 3> squares{};     ///< 192 bits, in units of 2^(2 * exponent - 104)
  };
  std::vector<std::uint64_t> cuts_;
  std::map<int, std::vector<Sums>> rows_;  ///< by exponent; one a segment
};

}  // namespace halfscope
