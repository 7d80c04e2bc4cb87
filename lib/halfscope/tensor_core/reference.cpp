// SPDX-License-Identifier: Apache-2.0
#include "halfscope/tensor_core/reference.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <vector>

#include "halfscope/array/array.hpp"
#include "halfscope/array/environment.hpp"
#include "halfscope/device/arena.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/tensor_core/exact_sum.hpp"

namespace halfscope::tensor_core {
namespace {

using Row = std::vector<float>;
constexpr ArrayOptions kOneThread = {.modes = {.nan = NanPolicy::cuda}, .threads = 1};

/// Copies row by row.
Row copied(MatrixAt<const float> m, std::int64_t rows, std::int64_t columns) {
  Row out;
  out.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) out.push_back(m.at(i, j));
  }
  return out;
}

MatrixAt<const float> transposed(MatrixAt<const float> m) { return {m.data, m.column, m.row}; }

/// One row of A and D, and B: stored row by row, or for `exact` column by column.
struct RowProduct {
  const float* a;
  const float* b;
  std::size_t k;
  Row& d;
};

void add_to(Row& d, const float* x) {
  for (std::size_t j = 0; j < d.size(); ++j) d[j] += x[j];
}

void multiply(float a, const float* b, Row& out) {
  for (std::size_t j = 0; j < out.size(); ++j) out[j] = a * b[j];
}

void sequential32(const RowProduct& in) {
  Row products(in.d.size());
  for (std::size_t k = 0; k < in.k; ++k) {
    multiply(in.a[k], in.b + k * in.d.size(), products);
    add_to(in.d, products.data());
  }
}

/// Sums the products [first, first + count), at least one.
Row pairwise(const RowProduct& in, std::size_t first, std::size_t count) {
  Row out(in.d.size());
  if (count == 1) {
    multiply(in.a[first], in.b + first * out.size(), out);
    return out;
  }
  const std::size_t half = count - count / 2;
  out = pairwise(in, first, half);
  add_to(out, pairwise(in, first + half, count - half).data());
  return out;
}

void pairwise32(const RowProduct& in) {
  if (in.k != 0) add_to(in.d, pairwise(in, 0, in.k).data());
}

void sequential16(const RowProduct& in) {
  const std::size_t n = in.d.size();
  std::vector<std::uint16_t> a(n), b(n), d(n);
  convert(kBinary16, in.d, d, kOneThread);
  for (std::size_t k = 0; k < in.k; ++k) {
    const auto factor =
        static_cast<std::uint16_t>(from_float(kBinary16, in.a[k], kOneThread.modes).bits);
    std::fill(a.begin(), a.end(), factor);
    convert(kBinary16, std::span(in.b + k * n, n), b, kOneThread);
    fused_multiply_add(kBinary16, a, b, d, d, kOneThread);
  }
  convert(kBinary16, d, in.d, kOneThread);
}

void exact(const RowProduct& in) {
  const float* column = in.b;
  for (float& d : in.d) {
    ExactSum sum;
    sum.add(d);
    for (std::size_t k = 0; k < in.k; ++k) sum.add_product(in.a[k], *column++);
    d = halfscope::detail::bit_cast<float>(static_cast<std::uint32_t>(sum.rounded(kBinary32).bits));
  }
}

void add_row(ReferenceSum sum, const RowProduct& in) {
  switch (sum) {
    case ReferenceSum::sequential32: return sequential32(in);
    case ReferenceSum::pairwise32: return pairwise32(in);
    case ReferenceSum::sequential16: return sequential16(in);
    case ReferenceSum::exact: break;
  }
  exact(in);
}

float canonical(float x) {
  return x == x ? x : halfscope::detail::bit_cast<float>(std::uint32_t{0x7FFFFFFF});
}

}  // namespace

void reference_gemm(ReferenceSum sum, const GemmShape& shape, MatrixAt<const float> a,
                    MatrixAt<const float> b, MatrixAt<float> d, int threads) {
  require_extents(shape);
  const Row right = sum == ReferenceSum::exact ? copied(transposed(b), shape.n, shape.k)
                                               : copied(b, shape.k, shape.n);
  const auto compute_row = [&](std::int64_t i) {
    const FloatEnvironment environment(RoundingControl::nearest);
    const Row left = copied({a.data + i * a.row, 0, a.column}, 1, shape.k);
    Row out = copied({d.data + i * d.row, 0, d.column}, 1, shape.n);
    add_row(sum, {left.data(), right.data(), left.size(), out});
    for (std::int64_t j = 0; j < shape.n; ++j) {
      d.at(i, j) = canonical(out[static_cast<std::size_t>(j)]);
    }
  };
  in_arena(threads, [&] {
    using Range = tbb::blocked_range<std::int64_t>;
    tbb::parallel_for(Range(0, shape.m), [&](const Range& r) {
      for (std::int64_t i = r.begin(); i < r.end(); ++i) compute_row(i);
    });
  });
}

}  // namespace halfscope::tensor_core
