// SPDX-License-Identifier: Apache-2.0
// Exact sums of magnitudes and of squares, divided as a binade table is: the part of a tensor's L1
// and L2 norm that lies below a boundary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "halfscope/table/boundary.hpp"
#include "halfscope/table/count/count.hpp"
#include "halfscope/table/cuts.hpp"

namespace halfscope {

/// Two bounds of a number; equal if it is known to the last bit of a binary64.
struct Bounds {
  double low = 0, high = 0;
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

/// L1: sum of magnitudes. L2: the sum of squares, whose share is the loss of the squared norm.
struct MassShare {
  Bounds l1, l2;
  friend bool operator==(const MassShare&, const MassShare&) = default;
};

/// The sums below a magnitude, and from it on: l1 in units of 2^r, l2 in units of 2^(2r), with r
/// the requested reference. low is rounded down, high is rounded up.
struct MassSplit {
  MassShare below, above;
};

/// Sums over finite nonzero values by (binade, segment between cuts), as integer multiples of a
/// power of two: nothing is rounded, and sums can be added in any order with the same bits. No
/// overflow is possible: a significand has 53 bits, its square 106, and 64 bits count the values
/// (117 and 170 bits in total).
class MagnitudeSums {
 public:
  /// The sums of one segment of one binade.
  struct Part {
    std::int32_t exponent = 0;
    std::uint32_t segment = 0;
    std::array<std::uint64_t, 2> magnitudes{};  ///< 128 bits, in units of 2^(exponent - 52)
    std::array<std::uint64_t, 3> squares{};     ///< 192 bits, in units of 2^(2 * exponent - 104)
    friend bool operator==(const Part&, const Part&) = default;
  };

  /// Throws std::invalid_argument as Cuts does.
  explicit MagnitudeSums(std::vector<std::uint64_t> cuts) : cuts_(std::move(cuts)) {}
  MagnitudeSums() = default;  ///< with the standard cuts

  /// threads: 0 for one per core. The sums are the same for every number of threads.
  void add(const TensorView& tensor, int threads = 0);
  /// Adds `times` values of the same magnitude.
  void add(Magnitude magnitude, std::uint64_t times = 1);
  /// Adds another object's sums, its values multiplied by 2^log2_factor. Throws
  /// std::invalid_argument if it lacks one of these cuts.
  void merge(const MagnitudeSums& other, int log2_factor = 0);

  /// Throws std::invalid_argument for a segment or an exponent that cannot occur.
  void add(const Part& part);
  /// Nonempty parts, ascending by exponent and segment.
  const std::vector<Part>& parts() const { return parts_; }

  /// Returns the share of the sums below m, rounded once to nearest; bounds if m lies inside a
  /// segment. Without values the share is 0.
  MassShare share_below(Magnitude m) const;

  MassSplit split_at(Magnitude m, int reference) const;
  /// Returns the highest binade with values; empty if there are none.
  std::optional<int> top_exponent() const;

  const std::vector<std::uint64_t>& cuts() const { return cuts_.list(); }
  friend bool operator==(const MagnitudeSums&, const MagnitudeSums&) = default;

 private:
  friend class SumsFiller;
  friend class PackedSums;
  struct Totals;
  Totals totals(Magnitude m) const;
  Part& part_at(int exponent, std::size_t segment);

  Cuts cuts_;
  std::vector<Part> parts_;  ///< nonempty parts, ascending by exponent and segment
};

/// The same sums in at most a third of the memory, for storage.
class PackedSums {
 public:
  explicit PackedSums(const MagnitudeSums& sums);
  MagnitudeSums unpacked() const;
  friend bool operator==(const PackedSums&, const PackedSums&) = default;

 private:
  Cuts cuts_;
  std::vector<std::byte> bytes_;
};

}  // namespace halfscope
