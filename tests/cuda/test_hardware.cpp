// SPDX-License-Identifier: Apache-2.0
// The GPU's half instructions against cuda_half. Exact operations must agree. The functions that
// cuda_fp16.h builds on approximate instructions are reported: how many of 65,536 inputs differ
// from the correctly rounded result, and the first of them.
#include <fmt/format.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cuda/hardware.hpp"
#include "cuda/skip.hpp"
#include "halfscope/number/cuda_half.hpp"

namespace test_hardware {

namespace cuda_half = halfscope::cuda_half;
using hardware::Operands;
using Bits = std::uint16_t;

bool is_nan(Bits a) { return (a & 0x7FFF) > 0x7C00; }

/// Differences of one function: all of them counted, the first few told.
struct Report {
  std::string name;
  std::uint64_t tried = 0, differ = 0, nan_payloads = 0, signs_of_zero = 0;
  std::string first = {};

  /// input(): names the input, called only for what is told.
  template <typename Input>
  void add(Bits ours, Bits gpu, Input input) {
    ++tried;
    if (ours == gpu) return;
    if (is_nan(ours) && is_nan(gpu)) {
      ++nan_payloads;
    } else if (((ours | gpu) & 0x7FFF) == 0) {
      ++signs_of_zero;
    } else {
      ++differ;
    }
    if (differ + nan_payloads + signs_of_zero > 8) return;
    first += fmt::format(" {} is {:04X}, not {:04X};", input(), gpu, ours);
  }

  void print() const {
    std::cout << fmt::format(
        "{}: of {} inputs {} differ, {} more in the NaN, {} more in the sign "
        "of zero.{}\n",
        name, tried, differ, nan_payloads, signs_of_zero, first);
  }
};

struct Unary {
  const char* name;
  hardware::Unary gpu;
  Bits (*ours)(Bits);
};

constexpr Unary kUnary[] = {
    {"hrcp", hardware::Unary::rcp, cuda_half::hrcp},
    {"hsqrt", hardware::Unary::sqrt, cuda_half::hsqrt},
    {"hrsqrt", hardware::Unary::rsqrt, cuda_half::hrsqrt},
    {"hexp", hardware::Unary::exp, cuda_half::hexp},
    {"hexp2", hardware::Unary::exp2, cuda_half::hexp2},
    {"hexp10", hardware::Unary::exp10, cuda_half::hexp10},
    {"hlog", hardware::Unary::log, cuda_half::hlog},
    {"hlog2", hardware::Unary::log2, cuda_half::hlog2},
    {"hlog10", hardware::Unary::log10, cuda_half::hlog10},
};

enum class Judged { exact, exact_but_zero_sign, approximate };

struct Row {
  const char* name;
  hardware::Operation gpu;
  Bits (*ours)(Operands);
  Judged judged;
};

using hardware::Operation;
// What .sat and .relu make of -0 is documented nowhere: told, not judged. __hdiv is built on
// rcp.approx.
constexpr Row kRows[] = {
    {"__hadd", Operation::add, [](Operands o) { return cuda_half::hadd(o.a, o.b); }, Judged::exact},
    {"__hsub", Operation::sub, [](Operands o) { return cuda_half::hsub(o.a, o.b); }, Judged::exact},
    {"__hmul", Operation::mul, [](Operands o) { return cuda_half::hmul(o.a, o.b); }, Judged::exact},
    {"__hfma", Operation::fma, [](Operands o) { return cuda_half::hfma(o.a, o.b, o.c); },
     Judged::exact},
    {"__hmax", Operation::max, [](Operands o) { return cuda_half::hmax(o.a, o.b); }, Judged::exact},
    {"__hmin", Operation::min, [](Operands o) { return cuda_half::hmin(o.a, o.b); }, Judged::exact},
    {"__hmax_nan", Operation::max_nan, [](Operands o) { return cuda_half::hmax_nan(o.a, o.b); },
     Judged::exact},
    {"__hmin_nan", Operation::min_nan, [](Operands o) { return cuda_half::hmin_nan(o.a, o.b); },
     Judged::exact},
    {"__hadd_sat", Operation::add_sat, [](Operands o) { return cuda_half::hadd_sat(o.a, o.b); },
     Judged::exact_but_zero_sign},
    {"__hsub_sat", Operation::sub_sat, [](Operands o) { return cuda_half::hsub_sat(o.a, o.b); },
     Judged::exact_but_zero_sign},
    {"__hmul_sat", Operation::mul_sat, [](Operands o) { return cuda_half::hmul_sat(o.a, o.b); },
     Judged::exact_but_zero_sign},
    {"__hfma_sat", Operation::fma_sat,
     [](Operands o) { return cuda_half::hfma_sat(o.a, o.b, o.c); }, Judged::exact_but_zero_sign},
    {"__hfma_relu", Operation::fma_relu,
     [](Operands o) { return cuda_half::hfma_relu(o.a, o.b, o.c); }, Judged::exact_but_zero_sign},
    {"__hdiv", Operation::div, [](Operands o) { return cuda_half::hdiv(o.a, o.b); },
     Judged::approximate},
};

/// Every encoding with some others; the third operand varies, ties and cancellation among them.
std::vector<Operands> operands() {
  constexpr Bits kOthers[] = {0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x1400, 0x2E66,
                              0x3555, 0x3BFF, 0x3C00, 0xBC00, 0x3C01, 0xC3FE, 0x5BFF,
                              0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFFFF};
  std::vector<Operands> out = {{0x39C0, 0xC3FE, 0x07FE}};  // by way of binary32 wrong
  for (unsigned a = 0; a < 0x10000; ++a) {
    for (const Bits b : kOthers) {
      const Bits first = static_cast<Bits>(a);
      out.push_back({first, b, static_cast<Bits>(cuda_half::hmul(first, b) ^ 0x8000)});
      out.push_back({b, first, static_cast<Bits>(a * 40503 + b)});
    }
  }
  return out;
}

TEST_CASE("the GPU's conversions to half are ours, all 2^32 inputs", "[cuda][number][gpu]") {
  if (skipped()) return;
  CHECK(hardware::narrowing_differences() == 0);
}

TEST_CASE("the GPU's conversion from half is ours, all 65,536 inputs", "[cuda][number][gpu]") {
  if (skipped()) return;
  const std::vector<std::uint32_t> gpu = hardware::all_as_float();
  REQUIRE(gpu.size() == 0x10000);
  unsigned wrong = 0;  // an input that differs, plus one
  for (unsigned code = 0; code < 0x10000; ++code) {
    const float ours = cuda_half::half2float(static_cast<Bits>(code));
    if (halfscope::detail::bit_cast<std::uint32_t>(ours) != gpu[code]) wrong = code + 1;
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("the GPU's half arithmetic is ours", "[cuda][number][gpu]") {
  if (skipped()) return;
  const std::vector<Operands> in = operands();
  for (const Row& row : kRows) {
    const std::vector<Bits> gpu = hardware::each(row.gpu, in);
    REQUIRE(gpu.size() == in.size());
    Report report{row.name};
    for (std::size_t i = 0; i < in.size(); ++i) {
      report.add(row.ours(in[i]), gpu[i], [&] {
        return fmt::format("({:04X}, {:04X}, {:04X})", in[i].a, in[i].b, in[i].c);
      });
    }
    report.print();
    if (row.judged == Judged::approximate) continue;
    CAPTURE(row.name, report.first);
    CHECK(report.differ == 0);
    CHECK(report.nan_payloads == 0);
    if (row.judged == Judged::exact) CHECK(report.signs_of_zero == 0);
  }
}

TEST_CASE("report: where the GPU's half functions are not correctly rounded",
          "[cuda][number][gpu]") {
  if (skipped()) return;
  for (const Unary& row : kUnary) {
    const std::vector<Bits> gpu = hardware::all(row.gpu);
    REQUIRE(gpu.size() == 0x10000);
    Report report{row.name};
    for (unsigned code = 0; code < 0x10000; ++code) {
      report.add(row.ours(static_cast<Bits>(code)), gpu[code],
                 [&] { return fmt::format("{:04X}", code); });
    }
    report.print();
    CHECK(gpu[0x3C00] == row.ours(0x3C00));  // at 1, where a broken harness would show
  }
}

}  // namespace test_hardware
