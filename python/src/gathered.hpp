// SPDX-License-Identifier: Apache-2.0
// The statistics that a recorder keeps of one tensor at one step.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::python {

/// Returns largest_magnitude() of the values in a table; empty if the table has no values.
std::optional<double> largest_in(const BinadeTable& table);

/// Statistics of one tensor at one step. Several calls of a module or several microbatches each add
/// a piece; tables and moments are sums over the pieces. keep() also stores values.
class Gathered {
 public:
  using Shape = std::vector<std::uint64_t>;
  struct Piece {
    BinadeTable table;
    Moments moments;
    Dtype dtype = Dtype::f32;
    std::optional<Dtype> computed;  ///< type of the computation; empty if unknown
    Shape shape;
  };

  /// Tables and moments that may still be computed; get() waits for them.
  using Counts = std::shared_future<std::vector<std::pair<BinadeTable, Moments>>>;

  void add(Piece&& piece);
  /// A piece whose table and moments are counts.get()[index].
  void add_later(Piece&& piece, Counts counts, std::size_t index);
  /// Waits for the pieces that add_later() added. Must be called before any result is read, except
  /// waiting(), kept() and pieces().
  void settle();
  /// Number of pieces that settle() would wait for.
  std::size_t waiting() const { return waiting_.size(); }
  /// Adds the pieces and kept values of `later`.
  void join(Gathered& later);
  void keep(nanobind::object values) { kept_.push_back(std::move(values)); }

  const std::vector<nanobind::object>& kept() const { return kept_; }
  /// A copy without kept values, which other threads may settle and destroy.
  Gathered statistics() const {
    Gathered copy = *this;
    copy.kept_.clear();
    return copy;
  }
  std::size_t pieces() const { return shapes_.size() + waiting_.size(); }
  const BinadeTable& table() const { return all_.table; }
  BinadeTable&& moved_table() { return std::move(all_.table); }
  /// A type that represents all values of all pieces exactly.
  Dtype dtype() const { return all_.dtype; }
  /// Type of the computation; empty if it is unknown or differs between pieces.
  std::optional<Dtype> computed() const { return all_.computed; }
  Moments moments() const;
  /// Approximate sum of squares of all values; infinite or NaN if a value is.
  double norm_squared() const;
  /// Shape of a single piece. For several pieces of equal shape, their number and that shape; else
  /// the number of values.
  Shape shape() const;

 private:
  std::uint64_t finite() const;
  double sum() const { return sum_.value_or(all_.moments.mean * static_cast<double>(finite())); }

  struct Waiting {
    Piece piece;
    Counts counts;
    std::size_t index;
  };

  Piece all_;  ///< sum of the pieces; its mean is the last piece's
  std::vector<Waiting> waiting_;
  std::vector<Shape> shapes_;
  std::optional<double> sum_;  ///< sum of all values, if there are several pieces
  std::vector<nanobind::object> kept_;
};

/// Calls gathered.settle() without the GIL. Returns `gathered`.
Gathered& settled(Gathered& gathered);

}  // namespace halfscope::python
