// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/paddle.hpp"

#include <cmath>

#include "analyzers/reading.hpp"
#include "catch.hpp"

using namespace halfscope;
using namespace halfscope::test;
using analyzers::Gap;
using log::Role;

TEST_CASE("Paddle: specials are exact, the others between min and max") {
  const TempFolder folder;
  const auto log = folder.write(
      "stdout.txt",
      "epoch 1\n"
      "[PRECISION] [ERROR] in [device=gpu:0, op=divide, tensor=, dtype=fp32], numel=40, num_nan=0, "
      "num_inf=4, num_zero=0, max=inf, min=1.048930e+00, mean=inf\n"
      "[PRECISION] in [device=cpu, op=matmul_grad, tensor=linear_0.w_0@GRAD, dtype=fp16], "
      "numel=10, "
      "num_zero=3, max=2.000000e-03, min=-1.000000e-06, mean=-nan\n"
      "[PRECISION] [ERROR] in [device=cpu, op=elementwise_pow_grad, tensor=, dtype=fp32], numel=3, "
      "num_nan=1, num_inf=0, num_zero=0, max=2.886751e-01, min=2.000000e-01, mean=-nan\n"
      "[PRECISION] in [device=cpu, op=adam_, tensor=, dtype=fp32], numel=1, num_zero=1, "
      "max=0.000000e+00, min=0.000000e+00, mean=0.000000e+00\n");
  const Told told = told_of(log);
  const auto* const divide = told.frame("divide", 0);
  REQUIRE(divide != nullptr);
  CHECK(divide->role == Role::activation);
  CHECK(divide->source_dtype == Dtype::f32);
  CHECK(divide->table.total() == 40);
  CHECK(divide->table.inf() == Interval(4));
  CHECK(divide->table.zero() == Interval(0));
  CHECK(divide->table.finite_nonzero() == Interval(36));
  CHECK(divide->table.at_or_above(magnitude_of(1.0489)) == Interval(36));
  CHECK(divide->table.at_or_above(magnitude_of(1.05)).low == 0);

  const auto* const matmul = told.frame("matmul_grad/linear_0.w_0@GRAD", 0);
  REQUIRE(matmul != nullptr);
  CHECK(matmul->role == Role::weight_grad);
  CHECK(matmul->counted);
  CHECK(matmul->source_dtype == Dtype::f16);
  CHECK(matmul->table.zero() == Interval(3));
  CHECK(matmul->table.nan() == Interval(0));
  CHECK(matmul->table.at_or_above(magnitude_of(0x1p-24)) == Interval(7));
  CHECK(matmul->table.at_or_above(magnitude_of(1.999e-3)) == Interval(1, 6));
  CHECK(matmul->table.at_or_above(magnitude_of(2.001e-3)) == Interval(0));

  // A NaN may have kept values from max and min: they are there, and no bounds.
  const auto* const pow = told.frame("elementwise_pow_grad", 0);
  REQUIRE(pow != nullptr);
  CHECK(pow->role == Role::activation_grad);
  CHECK(pow->table.nan() == Interval(1));
  CHECK(pow->table.at_or_above(magnitude_of(0.19)) == Interval(2));
  CHECK(pow->table.at_or_above(magnitude_of(0.28)) == Interval(1));

  const auto* const adam = told.frame("adam_", 0);
  REQUIRE(adam != nullptr);
  CHECK(adam->role == Role::unknown);
  CHECK(adam->table.zero() == Interval(1));
  CHECK(told.leaves_open(Gap::steps));
  CHECK(told.leaves_open(Gap::rounded));
}

TEST_CASE("Paddle: a NaN takes the bounds away, entries are counted, workers stay apart") {
  const TempFolder folder;
  const std::string entry =
      "[PRECISION] [ERROR] in [device=gpu:0, op=relu_grad, tensor=x, dtype=fp16], numel=9, "
      "num_nan=1, num_inf=0, num_zero=2, max=1.000000e+00, min=-1.000000e+00, mean=nan\n";
  folder.write("worker_gpu.0", entry + entry);
  folder.write("worker_gpu.1", entry);
  const Told told = told_of(folder / "");
  CHECK(told.frames.size() == 3);
  CHECK(told.frame("worker_gpu.0/relu_grad/x", 1) != nullptr);
  const auto* const frame = told.frame("worker_gpu.1/relu_grad/x", 0);
  REQUIRE(frame != nullptr);
  CHECK(frame->table.finite_nonzero() == Interval(6));
  CHECK(frame->table.at_or_above(magnitude_of(0.9)) == Interval(2, 6));
  CHECK(frame->table.at_or_above(magnitude_of(65504)) == Interval(0, 4));
  CHECK(frame->table.at_or_above(magnitude_of(65505)) == Interval(0));
}

TEST_CASE("Paddle: binary64 is printed by way of binary32") {
  const TempFolder folder;
  const auto log =
      folder.write("log",
                   "[PRECISION] in [device=cpu, op=exp, tensor=, dtype=fp64], numel=2, num_zero=0, "
                   "max=0.000000e+00, min=0.000000e+00, mean=0.000000e+00\n"
                   "[PRECISION] in [device=cpu, op=mul, tensor=, dtype=fp64], numel=2, num_zero=0, "
                   "max=inf, min=1.000000e+00, mean=inf\n");
  const Told told = told_of(log);
  REQUIRE(told.frame("exp", 0) != nullptr);
  CHECK(told.frame("exp", 0)->table.at_or_above(magnitude_of(0x1p-151)) == Interval(0, 2));
  CHECK(told.frame("exp", 0)->table.at_or_above(magnitude_of(0x1p-140)) == Interval(0));
  REQUIRE(told.frame("mul", 0) != nullptr);
  CHECK(told.frame("mul", 0)->table.at_or_above(magnitude_of(1e300)) == Interval(0, 2));
}

TEST_CASE("Paddle: lines that say too little or too much are left out and told") {
  const TempFolder folder;
  const std::string in = "[PRECISION] in [device=cpu, op=a, tensor=, dtype=fp32], ";
  const auto log = folder.write(
      "log",
      in + "numel=1, num_zero=0, max=1.000000e+00, min=1.000000e+00, mean=1.000000e+00\n" + in +
          "numel=1, num_zero=2, max=1.0e+00, min=1.0e+00\n" + in +
          "numel=-1, num_zero=0, max=1.0e+00, min=1.0e+00\n" + in +
          "numel=1, num_zero=0, max=x, min=1.0e+00\n" +
          "[PRECISION] [ERROR] in [device=cpu, op=a, tensor=, dtype=fp32], numel=1, find_nan=1, "
          "find_inf=0, max=1.0e+00, min=1.0e+00, mean=nan\n" +
          "[PRECISION] in [device=cpu, op=a, tensor=, dtype=], numel=1, num_zero=0, max=1.0e+00, "
          "min=1.0e+00\n[PRECISION]\n" +
          "[PRECISION] [ERROR] in [device=cpu, op=a, tensor=, dtype=fp32], "
          "numel=18446744073709551615, num_nan=9223372036854775807, "
          "num_inf=9223372036854775807, num_zero=9223372036854775807, max=1e0, min=1e0\n" +
          "[PRECISION] " + std::string(100'000, '=') + "\n");
  const Told told = told_of(log);
  CHECK(told.frames.size() == 1);
  CHECK(told.noted("8 lines are left out; the first is line 2: counts more than its numel"));
}
