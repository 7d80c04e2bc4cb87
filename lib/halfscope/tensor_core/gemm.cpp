// SPDX-License-Identifier: Apache-2.0
#include "halfscope/tensor_core/gemm.hpp"

#include <tbb/blocked_range.h>
#include <tbb/blocked_range2d.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

#include "halfscope/array/array.hpp"
#include "halfscope/array/environment.hpp"
#include "halfscope/device/arena.hpp"
#include "halfscope/number/bits.hpp"
#include "halfscope/tensor_core/gemm_pack.hpp"

namespace halfscope::tensor_core {
namespace {

constexpr std::int64_t kRows = 64;  // rows of a tile
constexpr Modes kCuda = {.nan = NanPolicy::cuda};

using Encodings = std::vector<std::uint16_t>;

float as_float(std::uint64_t bits) {
  return halfscope::detail::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

/// Replaces every NaN by 0x7FFFFFFF.
float canonical(float x) { return x == x ? x : as_float(0x7FFFFFFF); }

Chain checked_chain(const Gemm& how, const GemmShape& shape) {
  require_extents(shape);
  const Chain chain = chain_of(how.a, how.b);
  if (chain != nullptr) return chain;
  throw std::invalid_argument(
      "halfscope::tensor_core::gemm: no unit has elements of these two formats; expected binary16 "
      "or bfloat16 in both, or E4M3 and E5M2 in any pair");
}

/// Rows [row, row + rows) and columns [column, column + columns) of D.
struct Tile {
  std::int64_t row, rows, column, columns;
};

/// Parameters of a call, shared by its tiles.
class Product {
 public:
  Product(const Gemm& how, const GemmShape& shape, MatrixAt<const float> a, MatrixAt<const float> b,
          MatrixAt<float> d)
      : how_(how),
        shape_(shape),
        chain_(checked_chain(how, shape)),
        a_(a),
        b_(b),
        d_(d),
        slices_(steps_of(how.plan, how.unit.length, shape.k)),
        kernel_(has_kernel(how.unit)),
        width_(panel_width()),
        packed_(kernel_ ? shape.m : 0, shape.k) {}

  void run() {
    const std::int64_t m = shape_.m, n = shape_.n, width = static_cast<std::int64_t>(width_);
    in_arena(how_.threads, [&] {
      using Range = tbb::blocked_range<std::int64_t>;
      if (kernel_) {
        tbb::parallel_for(Range(0, m), [&](const Range& r) {
          for (std::int64_t i = r.begin(); i < r.end(); ++i) packed_.pack(how_.a, a_, i);
        });
      }
      using Range2 = tbb::blocked_range2d<std::int64_t>;
      const Range2 panels(0, (n + width - 1) / width, 1, 0, (m + kRows - 1) / kRows, 4);
      tbb::parallel_for(panels, [&](const Range2& r) {
        for (std::int64_t p = r.rows().begin(); p < r.rows().end(); ++p) {
          compute_panel(p * width, r.cols().begin() * kRows, std::min(r.cols().end() * kRows, m));
        }
      });
    });
  }

 private:
  /// Computes the columns of one panel in rows [first, last).
  void compute_panel(std::int64_t column, std::int64_t first, std::int64_t last) const {
    const std::int64_t columns = std::min(static_cast<std::int64_t>(width_), shape_.n - column);
    PackedPanel panel(width_, kernel_ ? shape_.k : 0);
    if (kernel_) panel.pack(how_.b, b_, column, columns);
    Encodings right;  // filled when chain() needs it
    for (std::int64_t i = first; i < last; i += kRows) {
      compute_tile({i, std::min(kRows, last - i), column, columns}, panel, right);
    }
  }

  void compute_tile(const Tile& tile, const PackedPanel& panel, Encodings& right) const {
    const FloatEnvironment environment(RoundingControl::nearest);
    std::vector<float> total = read(tile), part;
    for (std::size_t s = 0; s < slices_.size(); ++s) {
      std::vector<float>& sums = s == 0 ? total : part;
      if (s > 0) part.assign(total.size(), 0.0f);
      add_slice(tile, panel, right, slices_[s], sums);
      if (how_.plan.merge == Merge::rounded_partials) round(sums);
      if (s > 0) add(part, total);
      if (how_.plan.merge == Merge::running_sum) round(total);
    }
    round(total);
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      for (std::int64_t j = 0; j < tile.columns; ++j) {
        d_.at(tile.row + i, tile.column + j) = total[index(i, j)];
      }
    }
  }

  std::size_t index(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(i) * width_ + static_cast<std::size_t>(j);
  }

  std::vector<float> read(const Tile& tile) const {
    std::vector<float> out(static_cast<std::size_t>(tile.rows) * width_);
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      for (std::int64_t j = 0; j < tile.columns; ++j) {
        out[index(i, j)] = canonical(d_.at(tile.row + i, tile.column + j));
      }
    }
    return out;
  }

  static void add(const std::vector<float>& part, std::vector<float>& total) {
    for (std::size_t i = 0; i < total.size(); ++i) total[i] = canonical(total[i] + part[i]);
  }

  bool narrow() const {
    return how_.d == Accumulator::binary16 || how_.accumulator == Accumulator::binary16;
  }
  /// Rounds to the format of D.
  void round(std::vector<float>& values) const {
    if (narrow()) quantise(kBinary16, values, {.modes = kCuda, .threads = 1});
  }

  void add_slice(const Tile& tile, const PackedPanel& panel, Encodings& right,
                 const std::vector<StepRange>& steps, std::vector<float>& sums) const {
    std::vector<std::uint8_t> by_chain(static_cast<std::size_t>(tile.rows), 1);
    std::vector<float> before;
    if (kernel_ && panel.usable()) {
      std::copy_n(packed_.by_chain(tile.row), tile.rows, by_chain.begin());
      before = sums;
      run_steps(how_.unit, how_.accumulator, packed_.rows(tile.row, tile.rows), panel.panel(),
                steps, sums.data(), by_chain.data());
    }
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      if (by_chain[static_cast<std::size_t>(i)] == 0) continue;
      if (right.empty()) right = encoded_columns(tile);
      float* const row = sums.data() + index(i, 0);
      if (!before.empty()) std::copy_n(before.data() + index(i, 0), width_, row);
      add_row(tile, encoded_row(tile.row + i), right, steps, row);
    }
  }

  /// Computes one row of a tile by chain().
  void add_row(const Tile& tile, const Encodings& left, const Encodings& right,
               const std::vector<StepRange>& steps, float* sums) const {
    const Format f = format_of(how_.accumulator);
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      const std::uint16_t* const column = right.data() + j * shape_.k;
      auto sum = static_cast<std::uint32_t>(from_float(f, sums[j], kCuda).bits);
      for (const StepRange& one : steps) {
        sum = chain_(how_.unit, how_.accumulator, left.data() + one.first, column + one.first,
                     one.count, sum);
      }
      sums[j] = as_float(convert(kBinary32, f, sum, kCuda).bits);
    }
  }

  Encodings encoded_row(std::int64_t i) const {
    Encodings out(static_cast<std::size_t>(shape_.k));
    for (std::size_t k = 0; k < out.size(); ++k) {
      out[k] = encoding(how_.a, a_.at(i, static_cast<std::int64_t>(k)));
    }
    return out;
  }

  /// Returns the encodings of B's columns in the tile, column by column.
  Encodings encoded_columns(const Tile& tile) const {
    Encodings out;
    out.reserve(static_cast<std::size_t>(tile.columns * shape_.k));
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      for (std::int64_t k = 0; k < shape_.k; ++k) {
        out.push_back(encoding(how_.b, b_.at(k, tile.column + j)));
      }
    }
    return out;
  }

  static std::uint16_t encoding(Format f, float x) {
    return static_cast<std::uint16_t>(from_float(f, x, kCuda).bits);
  }

  const Gemm& how_;
  GemmShape shape_;
  Chain chain_;
  MatrixAt<const float> a_, b_;
  MatrixAt<float> d_;
  std::vector<std::vector<StepRange>> slices_;
  bool kernel_;  ///< true: the kernels compute the rows that they support
  std::size_t width_;
  PackedRows packed_;
};

}  // namespace

void gemm(const Gemm& how, const GemmShape& shape, MatrixAt<const float> a, MatrixAt<const float> b,
          MatrixAt<float> d) {
  Product(how, shape, a, b, d).run();
}

}  // namespace halfscope::tensor_core
