// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/statistics/statistics.hpp"

#include <cmath>

#include "analyzers/reading.hpp"
#include "catch.hpp"

namespace test_paddle {

using namespace halfscope;
using namespace halfscope::test;
using analyzers::frames::Gap;
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
  CHECK(matmul->loss_scaled);
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
  CHECK(told.frame("mul", 0)->table.at_or_above(magnitude_of(1e300)) == Interval(0, 1));
}

TEST_CASE("Paddle: lines that say too little or too much are skipped and told") {
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
  CHECK(told.noted("7 lines are skipped; the first is line 3: has no op, numel, max or min"));
  CHECK(
      told.noted("num_nan, num_inf and num_zero are together more than numel: once, in line 2 "
                 "('a', entry 1: dtype=fp32, numel=1, num_nan=0, num_inf=0, num_zero=2, "
                 "max=1.0e+00, min=1.0e+00); such an entry is skipped"));
}

std::string entry(const std::string& dtype, const std::string& counts, const std::string& max,
                  const std::string& min) {
  return "[PRECISION] [ERROR] in [device=cpu, op=a, tensor=, dtype=" + dtype + "], " + counts +
         ", max=" + max + ", min=" + min + ", mean=0\n";
}

TEST_CASE("Paddle: counts above numel are skipped, however large they are") {
  const std::string most = "9223372036854775807";
  const std::string counts = GENERATE_COPY(
      "numel=9, num_nan=" + most + ", num_inf=" + most + ", num_zero=2",  // 2^64 in all
      "numel=9, num_nan=" + most + ", num_inf=2, num_zero=" + most,
      "numel=9, num_nan=2, num_inf=" + most + ", num_zero=" + most,
      "numel=9, num_nan=9, num_inf=0, num_zero=1", "numel=9, num_nan=10, num_inf=0, num_zero=0");
  INFO(counts);
  const TempFolder folder;
  const Told told = told_of(folder.write(
      "log", entry("fp32", "numel=1, num_nan=0, num_inf=0, num_zero=1", "0.0e+00", "0.0e+00") +
                 entry("fp32", counts, "nan", "nan")));
  CHECK(told.frames.size() == 1);
  CHECK(told.noted("are together more than numel: once, in line 2 ('a', entry 1"));
  const Told huge = told_of(folder.write(
      "log",
      entry("fp32", "numel=281474976710657, num_nan=0, num_inf=0, num_zero=1", "1", "0") +
          entry("fp32", "numel=281474976710656, num_nan=0, num_inf=0, num_zero=1", "1", "0")));
  CHECK(huge.frames.size() == 1);
  CHECK(huge.noted("a line is skipped; the first is line 1: its numel is above 2^48"));
}

TEST_CASE("Paddle: extremes that contradict each other are not used") {
  const TempFolder folder;
  const std::string counts = "numel=9, num_nan=1, num_inf=0, num_zero=2";
  const Told told = told_of(
      folder.write("log", entry("fp16", counts, "1.000000e+00", "1.000001e+00") + "other\n" +
                              entry("fp16", counts, "1.000000e+00", "2.000000e+00")));
  REQUIRE(told.frames.size() == 2);  // the first differs by no more than the digits' rounding
  CHECK(told.frames[0].table.at_or_above(magnitude_of(0.9)) == Interval(1, 6));
  const BoundedTable& table = told.frames[1].table;
  CHECK(table.nan() == Interval(1));
  CHECK(table.zero() == Interval(2));
  CHECK(table.at_or_above(magnitude_of(0x1p-24)) == Interval(6));
  CHECK(table.at_or_above(magnitude_of(65504)) == Interval(0, 6));
  CHECK(table.at_or_above(magnitude_of(65505)) == Interval(0));
  CHECK(
      told.noted("max is below min: once, in line 3 ('a', entry 1: dtype=fp16, numel=9, "
                 "num_nan=1, num_inf=0, num_zero=2, max=1.000000e+00, min=2.000000e+00); neither "
                 "is used"));
}

TEST_CASE("Paddle: where max, min and num_zero contradict each other none is believed") {
  struct Row {
    const char *counts, *max, *min;
  };
  const auto row = GENERATE(
      // More zeros than the extremes leave room for.
      Row{"numel=8, num_nan=1, num_inf=1, num_zero=6", "inf", "1.000000e+00"},
      Row{"numel=6, num_nan=0, num_inf=0, num_zero=6", "1.000000e+00", "0.000000e+00"},
      Row{"numel=6, num_nan=0, num_inf=0, num_zero=5", "1.000000e+00", "-1.000000e+00"},
      // Zeros that are not between.
      Row{"numel=6, num_nan=0, num_inf=0, num_zero=1", "2.000000e+00", "1.000000e+00"},
      Row{"numel=6, num_nan=0, num_inf=0, num_zero=1", "-1.000000e+00", "-2.000000e+00"},
      // No zeros, and an extreme is one.
      Row{"numel=6, num_nan=0, num_inf=0, num_zero=0", "1.000000e+00", "0.000000e+00"},
      Row{"numel=6, num_nan=0, num_inf=0, num_zero=0", "-0.000000e+00", "-1.000000e+00"},
      // All zero by the extremes.
      Row{"numel=6, num_nan=0, num_inf=0, num_zero=5", "0.000000e+00", "0.000000e+00"});
  INFO(row.counts << ' ' << row.max << ' ' << row.min);
  const TempFolder folder;
  const Told told = told_of(folder.write("log", entry("fp16", row.counts, row.max, row.min)));
  REQUIRE(told.frames.size() == 1);
  const BoundedTable& table = told.frames[0].table;
  CHECK(table.zero() == Interval(0, 6));
  CHECK(table.finite_nonzero() == Interval(0, 6));
  CHECK(table.at_or_above(magnitude_of(65504)) == Interval(0, 6));
  CHECK(table.at_or_above(magnitude_of(65505)) == Interval(0));
  CHECK(table.inf() == table.nan());
  CHECK(told.noted("max and min do not fit num_zero: once, in line 1 ('a', entry 0: dtype=fp16"));
  CHECK(told.noted("none of them is used: finite values may be zero or anything in their format"));
}

TEST_CASE("Paddle: of entries whose infinities, NaN or format are in doubt only numel holds") {
  struct Row {
    const char *dtype, *counts, *max, *min, *finding;
  };
  constexpr const char* specials = "max and min do not fit num_nan and num_inf";
  constexpr const char* format = "max or min is not a number of dtype";
  const auto row = GENERATE_COPY(
      Row{"fp32", "numel=6, num_nan=0, num_inf=0, num_zero=0", "inf", "1.0e+00", specials},
      Row{"fp32", "numel=6, num_nan=0, num_inf=1, num_zero=0", "inf", "-inf", specials},
      Row{"fp32", "numel=6, num_nan=0, num_inf=5, num_zero=0", "inf", "inf", specials},
      Row{"fp64", "numel=6, num_nan=0, num_inf=1, num_zero=0", "1.0e+00", "1.0e+00", specials},
      Row{"fp32", "numel=6, num_nan=0, num_inf=0, num_zero=0", "nan", "1.0e+00", specials},
      Row{"fp16", "numel=6, num_nan=0, num_inf=0, num_zero=0", "1.0e+09", "1.0e+00", format},
      Row{"fp16", "numel=6, num_nan=0, num_inf=0, num_zero=0", "1.0e+00", "-1.0e-09", format});
  INFO(row.dtype << ' ' << row.counts << ' ' << row.max << ' ' << row.min);
  const TempFolder folder;
  const Told told = told_of(folder.write("log", entry(row.dtype, row.counts, row.max, row.min)));
  REQUIRE(told.frames.size() == 1);
  const BoundedTable& table = told.frames[0].table;
  CHECK(table.total() == 6);
  for (const Interval& count : {table.nan(), table.inf(), table.zero(), table.finite_nonzero()}) {
    CHECK(count == Interval(0, 6));
  }
  CHECK(table.at_or_above(magnitude_of(1e30)) == Interval(0, 6));
  CHECK(told.noted(std::string(row.finding) + ": once, in line 1 ('a', entry 0"));
  CHECK(told.noted("of these only numel is used"));
}

TEST_CASE("Paddle: entries that fit are not said to contradict themselves") {
  const auto [dtype, counts, max, min] =
      GENERATE(table<const char*, const char*, const char*, const char*>(
          {{"fp32", "numel=1, num_nan=0, num_inf=0, num_zero=0", "2.0e+00", "2.0e+00"},
           {"fp32", "numel=1, num_nan=0, num_inf=0, num_zero=0", "-2.0e+00", "-2.0e+00"},
           {"fp32", "numel=2, num_nan=0, num_inf=2, num_zero=0", "inf", "-inf"},
           {"fp32", "numel=2, num_nan=0, num_inf=2, num_zero=0", "-inf", "-inf"},
           {"fp32", "numel=3, num_nan=2, num_inf=1, num_zero=0", "nan", "nan"},
           {"fp32", "numel=2, num_nan=2, num_inf=0, num_zero=0", "nan", "nan"},
           {"fp32", "numel=3, num_nan=2, num_inf=0, num_zero=1", "0.0e+00", "0.0e+00"},
           {"fp32", "numel=3, num_nan=1, num_inf=0, num_zero=1", "1.0e+00", "1.0e+00"},
           {"fp32", "numel=3, num_nan=1, num_inf=1, num_zero=0", "1.0e+00", "1.0e+00"},
           {"fp64", "numel=3, num_nan=0, num_inf=0, num_zero=1", "0.0e+00", "0.0e+00"},
           {"fp64", "numel=3, num_nan=0, num_inf=0, num_zero=1", "inf", "-inf"},
           {"fp16", "numel=3, num_nan=0, num_inf=0, num_zero=1", "6.550400e+04", "-5.960464e-08"},
           {"bf16", "numel=3, num_nan=0, num_inf=0, num_zero=1", "3.389531e+38", "-9.183550e-41"},
           {"fp32", "numel=3, num_nan=0, num_inf=0, num_zero=1", "3.402823e+38", "-1.401298e-45"},
           {"fp32", "numel=3, num_nan=0, num_inf=0, num_zero=1", "0.0e+00", "-1.0e+00"},
           {"fp32", "numel=3, num_nan=0, num_inf=0, num_zero=3", "0.0e+00", "-0.0e+00"}}));
  INFO(dtype << ' ' << counts << ' ' << max << ' ' << min);
  const TempFolder folder;
  const Told told = told_of(folder.write("log", entry(dtype, counts, max, min)));
  CHECK(told.frames.size() == 1);
  CHECK(!told.noted("in line 1"));
}

}  // namespace test_paddle
