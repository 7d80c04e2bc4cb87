// SPDX-License-Identifier: Apache-2.0
// Eigen matrices of half and its like.
#include "halfscope/number/half_eigen.hpp"

#include <Eigen/Dense>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "halfscope/number/half_fmt.hpp"

namespace test_half_eigen {

using namespace halfscope;

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <typename T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

/// Values in [-1, 1] with an integer hash, so that every run sees the same ones.
template <typename M>
M filled(int rows, int cols, std::uint32_t seed) {
  M m(rows, cols);
  for (int j = 0; j < cols; ++j) {
    for (int i = 0; i < rows; ++i) {
      seed = seed * 1664525U + 1013904223U;
      m(i, j) = typename M::Scalar(static_cast<double>(seed >> 8) * 0x1p-23 - 1);
    }
  }
  return m;
}

/// The order that half_eigen.hpp states.
template <typename A, typename B>
auto by_hand(const A& a, const B& b, Eigen::Index i, Eigen::Index j) {
  typename A::Scalar sum = a(i, 0) * b(0, j);
  for (Eigen::Index k = 1; k < a.cols(); ++k) sum = sum + a(i, k) * b(k, j);
  return sum;
}

/// How many elements of the product differ in their bits from the loop's.
template <typename A, typename B, typename C>
int differing(const A& a, const B& b, const C& product) {
  int count = product.rows() == a.rows() && product.cols() == b.cols() ? 0 : 1;
  for (Eigen::Index i = 0; i < a.rows(); ++i) {
    for (Eigen::Index j = 0; j < b.cols(); ++j) {
      count += product(i, j).bits() != by_hand(a, b, i, j).bits();
    }
  }
  return count;
}

/// A well-conditioned system: entries in [-1, 1], 4 and more on the diagonal.
template <typename T>
Matrix<T> dominant(int n, std::uint32_t seed) {
  return filled<Matrix<T>>(n, n, seed) + Matrix<T>::Identity(n, n) * T(6);
}

double distance(const Vector<half>& x, const Vector<half>& y) {
  return (x.cast<double>() - y.cast<double>()).cwiseAbs().maxCoeff();
}

TEMPLATE_TEST_CASE("matrix products are the hand loop, bit for bit", "[number][eigen]", half,
                   bfloat16, float8_e4m3) {
  for (const int n : {1, 2, 3, 7, 19, 33, 70}) {
    const auto a = filled<Matrix<TestType>>(n, n + 5, 1);
    const auto b = filled<Matrix<TestType>>(n + 5, n + 2, 2);
    const auto x = filled<Vector<TestType>>(n + 5, 1, 3);
    const Matrix<TestType> at = a.transpose();
    const Matrix<TestType> xt = x.transpose();
    CAPTURE(n);
    const Matrix<TestType> ab = a * b;
    CHECK(differing(a, b, ab) == 0);
    CHECK(differing(a, b, Matrix<TestType>(at.transpose() * b)) == 0);
    CHECK(differing(a, x, Matrix<TestType>(a * x)) == 0);
    CHECK(differing(xt, b, Matrix<TestType>(x.transpose() * b)) == 0);
    CHECK(differing(xt, x, Matrix<TestType>(x.transpose() * x)) == 0);
    Matrix<TestType> sum = ab;
    sum.noalias() += a * b;
    CHECK(sum == ab + ab);
    sum.noalias() -= a * b;
    CHECK(sum == (ab + ab) - ab);
  }
  const auto row_major =
      filled<Eigen::Matrix<TestType, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(30, 40, 4);
  const auto b = filled<Matrix<TestType>>(40, 20, 5);
  CHECK(differing(row_major, b, Matrix<TestType>(row_major * b)) == 0);
  const auto wide =
      filled<Matrix<TestType>>(9, 300, 6);  // Eigen's own kernels cut this into blocks
  const auto x = filled<Vector<TestType>>(300, 1, 7);
  CHECK(differing(wide, x, Matrix<TestType>(wide * x)) == 0);
}

TEST_CASE("fixed sizes have the same order", "[number][eigen]") {
  const auto check = [](auto zero) {
    using M = decltype(zero);
    const M a = filled<M>(static_cast<int>(zero.rows()), static_cast<int>(zero.cols()), 7);
    const M b = filled<M>(static_cast<int>(zero.rows()), static_cast<int>(zero.cols()), 8);
    CHECK(differing(a, b, M(a * b)) == 0);
    half sum = a(0);
    for (Eigen::Index k = 1; k < a.size(); ++k) sum += a(k);
    CHECK(a.sum().bits() == sum.bits());
  };
  check(Eigen::Matrix<half, 2, 2>());
  check(Eigen::Matrix<half, 3, 3>());
  check(Eigen::Matrix<half, 4, 4>());
  check(Eigen::Matrix<half, 5, 5>());
  check(Eigen::Matrix<half, 8, 8>());
}

TEST_CASE("sums, dot products and norms take the elements in order", "[number][eigen]") {
  const auto x = filled<Vector<half>>(100, 1, 11);
  const auto y = filled<Vector<half>>(100, 1, 12);
  half sum = x(0), dot = x(0) * y(0), squares = x(0) * x(0), ones = abs(x(0));
  for (int k = 1; k < 100; ++k) {
    sum += x(k);
    dot += x(k) * y(k);
    squares += x(k) * x(k);
    ones += abs(x(k));
  }
  CHECK(x.sum().bits() == sum.bits());
  CHECK(x.dot(y).bits() == dot.bits());
  CHECK(x.squaredNorm().bits() == squares.bits());
  CHECK(x.norm().bits() == sqrt(squares).bits());
  CHECK(x.lpNorm<1>().bits() == ones.bits());
  CHECK(x.mean().bits() == (sum / half(100)).bits());
  // Which is not what a sum in binary32 rounds to.
  CHECK(x.cast<float>().squaredNorm() != static_cast<float>(squares));
}

TEST_CASE("2048 ones and one more are 2048", "[number][eigen]") {
  const Vector<half> ones = Vector<half>::Ones(5000);
  CHECK(ones.sum() == half(2048));
  CHECK((ones.transpose() * ones).value() == half(2048));
}

TEST_CASE("small systems are solved", "[number][eigen]") {
  // Of order 8 and 24, condition below 10: errors of some units in the last place of 1, 2^-10.
  for (const int n : {8, 24}) {
    const Matrix<half> a = dominant<half>(n, 21);
    const auto x = filled<Vector<half>>(n, 1, 22);
    const Vector<half> b = a * x;
    CAPTURE(n);
    const double bound = 16 * 0x1p-10;
    CHECK(distance(a.partialPivLu().solve(b), x) < bound);
    CHECK(distance(a.fullPivLu().solve(b), x) < bound);
    CHECK(distance(a.householderQr().solve(b), x) < bound);
    CHECK(distance(a.colPivHouseholderQr().solve(b), x) < bound);
    CHECK(distance(a.inverse() * b, x) < 2 * bound);
    const Matrix<half> positive =
        (a + a.transpose()) * half(0.5) + Matrix<half>::Identity(n, n) * half(8);
    const Vector<half> c = positive * x;
    CHECK(distance(positive.llt().solve(c), x) < bound);
    CHECK(distance(positive.ldlt().solve(c), x) < bound);
    CHECK(distance(a.triangularView<Eigen::Lower>().solve(
                       Vector<half>(a.triangularView<Eigen::Lower>() * x)),
                   x) < bound);
  }
}

TEST_CASE("binary32 solves as float does", "[number][eigen]") {
  // Fixed small sizes, where Eigen takes the same path for both.
  Eigen::Matrix<float, 3, 3> a;
  a << 4, 1, -2, 0.5F, 5, 1.25F, -1, 0.1F, 3;
  const Eigen::Matrix<binary32, 3, 3> b = a.cast<binary32>();
  const Eigen::Matrix<float, 3, 1> right(1, 0.3F, -7);
  const Eigen::Matrix<float, 3, 1> want = a.partialPivLu().solve(right);
  const Eigen::Matrix<binary32, 3, 1> found = b.partialPivLu().solve(right.cast<binary32>());
  CHECK((found.cast<float>() - want).cwiseAbs().maxCoeff() < 4 * 0x1p-22F);
  CHECK(b.cast<float>() == a);
}

TEST_CASE("coefficients, casts and comparisons", "[number][eigen]") {
  Matrix<half> m(2, 3);
  m << 1_h, -2_h, 0.5_h, 4_h, 0.1_h, -8_h;
  Eigen::Index i = 0;
  Eigen::Index j = 0;
  CHECK(m.minCoeff(&i, &j) == half(-8));
  CHECK((i == 1 && j == 2));
  CHECK(m.maxCoeff() == half(4));
  CHECK(m.cwiseAbs().maxCoeff() == half(8));
  CHECK(m.cast<float>().cast<half>() == m);
  CHECK(m.cast<double>()(1, 1) == 0.0999755859375);
  CHECK(m.cast<bfloat16>()(1, 1).bits() == 0x3DCD);
  CHECK(m.cast<int>()(1, 1) == 0);
  CHECK(m.cast<int>()(1, 2) == -8);
  CHECK((m.array() > half(0)).count() == 4);
  CHECK((m.array() * m.array()).sqrt().matrix().isApprox(m.cwiseAbs()));
  CHECK((m * half(2) - m).isApprox(m));
  CHECK(m.isApprox(m * half(1.001)));
  CHECK_FALSE(m.isApprox(m * half(1.1)));
  CHECK((m / half(2) + m / half(2)) == m);
  CHECK((-m).cwiseMax(m) == m.cwiseAbs());
  CHECK(m.allFinite());
  CHECK_FALSE(m.hasNaN());
  m(0, 0) = std::numeric_limits<half>::quiet_NaN();
  CHECK(m.hasNaN());
  m(0, 0) = std::numeric_limits<half>::infinity();
  CHECK((!m.allFinite() && !m.hasNaN()));
  CHECK(Matrix<half>::Identity(3, 3).isIdentity());
  CHECK(Matrix<half>::Zero(2, 2).isZero());
  CHECK(Vector<half>::LinSpaced(5, half(0), half(1))(3) == half(0.75));
}

TEST_CASE("traits are the limits", "[number][eigen]") {
  using Traits = Eigen::NumTraits<half>;
  CHECK(Traits::epsilon() == 0x1p-10_h);
  CHECK(Traits::dummy_precision() == 0x1p-7_h);
  CHECK(Traits::highest() == 65504_h);
  CHECK(Traits::lowest() == -65504_h);
  CHECK(Traits::digits10() == 3);
  CHECK(Traits::digits() == 11);
  CHECK(Traits::infinity() == std::numeric_limits<half>::infinity());
  STATIC_REQUIRE((!Traits::IsInteger && Traits::IsSigned && !Traits::IsComplex));
  STATIC_REQUIRE_FALSE(Traits::RequireInitialization);
}

TEST_CASE("random matrices", "[number][eigen]") {
  std::srand(1);
  const Matrix<half> m = Matrix<half>::Random(50, 50);
  CHECK(m.allFinite());
  CHECK(m.minCoeff() >= half(-1));
  CHECK(m.minCoeff() < half(-0.9));
  CHECK(m.maxCoeff() <= half(1));
  CHECK(m.maxCoeff() > half(0.9));
  CHECK(std::abs(m.cast<double>().mean()) < 0.05);
}

TEST_CASE("printing", "[number][eigen]") {
  Matrix<half> m(2, 2);
  m << 0.1_h, -2_h, 65504_h, 6e-8_h;
  std::ostringstream out;
  out << m;
  CHECK(out.str() == "  0.1    -2\n65504 6e-08");
}

}  // namespace test_half_eigen
