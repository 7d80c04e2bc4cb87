// SPDX-License-Identifier: Apache-2.0
// What a recorder keeps of one tensor of one step.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::python {

/// As largest_magnitude() of the elements of a table; empty where there are none.
std::optional<double> largest_in(const BinadeTable& table);

/// One tensor of one step, in as many pieces as it was seen: several calls of a module, several
/// microbatches. Their tables add. It keeps the values that it is given to keep.
class Gathered {
 public:
  using Shape = std::vector<std::uint64_t>;
  struct Piece {
    BinadeTable table;
    Moments moments;
    Dtype dtype = Dtype::f32;
    std::optional<Dtype> computed;  ///< empty: unknown
    Shape shape;
  };

  /// Tables and moments that are there when they are asked for; the asking waits.
  using Counts = std::shared_future<std::vector<std::pair<BinadeTable, Moments>>>;

  void add(Piece&& piece);
  /// A piece whose table and moments are counts.get()[index].
  void add_later(Piece&& piece, Counts counts, std::size_t index);
  /// Waits for what was added by add_later(). To be called before anything is asked for but
  /// kept() and pieces().
  void settle();
  /// Pieces that settle() would wait for.
  std::size_t waiting() const { return waiting_.size(); }
  /// Adds the pieces of another one.
  void join(Gathered& later);
  void keep(nanobind::object values) { kept_.push_back(std::move(values)); }

  const std::vector<nanobind::object>& kept() const { return kept_; }
  std::size_t pieces() const { return shapes_.size() + waiting_.size(); }
  const BinadeTable& table() const { return all_.table; }
  /// One that holds all values of the pieces exactly.
  Dtype dtype() const { return all_.dtype; }
  /// Empty also where pieces were computed in several.
  std::optional<Dtype> computed() const { return all_.computed; }
  Moments moments() const;
  /// Sum of squares of all values, approximate: infinite or NaN where a value is.
  double norm_squared() const;
  /// Of one piece, its own; of several alike, their number first; else how many values.
  Shape shape() const;

 private:
  std::uint64_t finite() const;
  double sum() const { return sum_.value_or(all_.moments.mean * static_cast<double>(finite())); }

  struct Waiting {
    Piece piece;
    Counts counts;
    std::size_t index;
  };

  Piece all_;  ///< its mean is that of the piece that came last
  std::vector<Waiting> waiting_;
  std::vector<Shape> shapes_;
  std::optional<double> sum_;  ///< of several pieces
  std::vector<nanobind::object> kept_;
};

/// Waits for what it lacks, without the GIL.
Gathered& settled(Gathered& gathered);

}  // namespace halfscope::python
