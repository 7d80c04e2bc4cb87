// SPDX-License-Identifier: Apache-2.0
// What a recorder keeps of one tensor of one step.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::python {

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

  void add(Piece&& piece);
  /// Adds the pieces of another one.
  void join(const Gathered& later);
  void keep(nanobind::object values) { kept_.push_back(std::move(values)); }

  const std::vector<nanobind::object>& kept() const { return kept_; }
  std::size_t pieces() const { return shapes_.size(); }
  const BinadeTable& table() const { return all_.table; }
  /// One that holds all values of the pieces exactly.
  Dtype dtype() const { return all_.dtype; }
  /// Empty also where pieces were computed in several.
  std::optional<Dtype> computed() const { return all_.computed; }
  Moments moments() const;
  /// Of one piece, its own; of several alike, their number first; else how many values.
  Shape shape() const;

 private:
  std::uint64_t finite() const;
  double sum() const { return sum_.value_or(all_.moments.mean * static_cast<double>(finite())); }

  Piece all_;  ///< its mean is that of the piece that came last
  std::vector<Shape> shapes_;
  std::optional<double> sum_;  ///< of several pieces
  std::vector<nanobind::object> kept_;
};

}  // namespace halfscope::python
