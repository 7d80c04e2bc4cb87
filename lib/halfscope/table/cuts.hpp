// SPDX-License-Identifier: Apache-2.0
// The fractions at which the binades of a table are divided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace halfscope {

/// Ascending fractions in units of 2^-52: segment i of a binade has the fractions in [cut(i),
/// cut(i+1)), with cut(0) = 0. Copies share the list, since a log may have a million tables.
class Cuts {
 public:
  Cuts();  ///< standard_cuts()
  /// Throws std::invalid_argument unless the cuts ascend within (0, 2^52).
  explicit Cuts(std::vector<std::uint64_t> cuts);
  // A move also copies the pointer, so that there is always a list.
  Cuts(const Cuts&) = default;
  Cuts& operator=(const Cuts&) = default;

  const std::vector<std::uint64_t>& list() const { return *list_; }
  std::size_t segment_of(std::uint64_t fraction) const;
  /// First fraction of a segment; last_of(): its last.
  std::uint64_t first_of(std::size_t segment) const;
  std::uint64_t last_of(std::size_t segment) const;

  friend bool operator==(const Cuts& a, const Cuts& b) {
    return a.list_ == b.list_ || *a.list_ == *b.list_;
  }

 private:
  std::shared_ptr<const std::vector<std::uint64_t>> list_;
};

}  // namespace halfscope
