// SPDX-License-Identifier: Apache-2.0
#include "halfscope/block/hadamard.hpp"

#include <array>
#include <cfloat>
#include <vector>

#include "catch.hpp"

namespace test_hadamard {

using Matrix16 = std::array<std::array<double, 16>, 16>;

/// Sylvester's matrix by its definition: H of 2n is [[H, H], [H, -H]].
Matrix16 sylvester() {
  Matrix16 h{};
  h[0][0] = 1;
  for (std::size_t n = 1; n < 16; n *= 2) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        h[i + n][j] = h[i][j + n] = h[i][j];
        h[i + n][j + n] = -h[i][j];
      }
    }
  }
  return h;
}

TEST_CASE("rows of 16 are multiplied by diag(signs) H / 4", "[block]") {
  const Matrix16 h = sylvester();
  const std::array<int, 16> signs = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};
  std::vector<float> values(48);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 37) - 18;
  std::vector<float> found = values;
  halfscope::block::hadamard(found, halfscope::kBinary32);
  for (std::size_t i = 0; i < values.size(); ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < 16; ++k) {
      sum += signs[k] * static_cast<double>(values[i / 16 * 16 + k]) * h[k][i % 16] / 4;
    }
    CHECK(static_cast<double>(found[i]) == sum);  // sums of quarters are exact
  }
}

TEST_CASE("sums of the transform are rounded to the type of the values", "[block]") {
  std::vector<float> values(16);
  values[0] = 4;
  values[1] = 0x1p-8F;
  std::vector<float> halves = values;
  halfscope::block::hadamard(values, halfscope::kBfloat16);  // 8 bits
  halfscope::block::hadamard(halves, halfscope::kBinary16);  // 11 bits
  CHECK(values[0] == 1);
  CHECK(halves[0] == 1 + 0x1p-10F);
  CHECK(halves[1] == 1 - 0x1p-10F);
}

}  // namespace test_hadamard
