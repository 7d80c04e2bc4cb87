// SPDX-License-Identifier: Apache-2.0
// The headers that need a library of their own.
#include <Eigen/Dense>

#include "halfscope/number/half_eigen.hpp"
#include "halfscope/number/half_fmt.hpp"

int main() {
  using halfscope::half;
  const Eigen::Matrix<half, 2, 2> two = Eigen::Matrix<half, 2, 2>::Constant(half(2));
  const Eigen::Matrix<half, 2, 2> square = two * two;
  return fmt::format("{:.1f}", square(0, 1)) == "8.0" ? 0 : 1;
}
