// SPDX-License-Identifier: Apache-2.0
// CUDA's half intrinsics against the toolkit's own host code (cuda_fp16.h compiled by g++): the
// conversions, + - * /, their _sat forms, maximum and minimum. __hfma, __hfma_relu and the
// functions (hexp, hrcp, ...) have no host code: tests/number/test_cuda_half.cpp judges them.
#include <cuda_fp16.h>
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/cuda_half.hpp"
#include "parallel.hpp"

namespace test_half_host {

namespace cuda_half = halfscope::cuda_half;
using Bits = std::uint16_t;
using halfscope::detail::bit_cast;

Bits encoding(__half h) { return static_cast<__half_raw>(h).x; }

__half half_of(Bits bits) {
  __half_raw raw;
  raw.x = bits;
  return __half(raw);
}

struct Narrowing {
  const char* name;
  Bits (*ours)(float);
  Bits (*cuda)(float);
};

// NaNs included: CUDA's is 0x7FFF whatever came in.
constexpr Narrowing kNarrowing[] = {
    {"__float2half_rn", cuda_half::float2half_rn,
     [](float x) { return encoding(__float2half_rn(x)); }},
    {"__float2half_rz", cuda_half::float2half_rz,
     [](float x) { return encoding(__float2half_rz(x)); }},
    {"__float2half_ru", cuda_half::float2half_ru,
     [](float x) { return encoding(__float2half_ru(x)); }},
    {"__float2half_rd", cuda_half::float2half_rd,
     [](float x) { return encoding(__float2half_rd(x)); }},
};

struct Binary {
  const char* name;
  Bits (*ours)(Bits, Bits);
  __half (*cuda)(__half, __half);
};

constexpr Binary kBinary[] = {
    {"__hadd", cuda_half::hadd, __hadd},
    {"__hadd_rn", cuda_half::hadd, __hadd_rn},
    {"__hadd_sat", cuda_half::hadd_sat, __hadd_sat},
    {"__hsub", cuda_half::hsub, __hsub},
    {"__hsub_rn", cuda_half::hsub, __hsub_rn},
    {"__hsub_sat", cuda_half::hsub_sat, __hsub_sat},
    {"__hmul", cuda_half::hmul, __hmul},
    {"__hmul_rn", cuda_half::hmul, __hmul_rn},
    {"__hmul_sat", cuda_half::hmul_sat, __hmul_sat},
    {"__hdiv", cuda_half::hdiv, __hdiv},
    {"__hmax", cuda_half::hmax, __hmax},
    {"__hmin", cuda_half::hmin, __hmin},
    {"__hmax_nan", cuda_half::hmax_nan, __hmax_nan},
    {"__hmin_nan", cuda_half::hmin_nan, __hmin_nan},
};

std::string disagreement(const Narrowing& row, std::uint32_t bits) {
  const auto x = bit_cast<float>(bits);
  const Bits ours = row.ours(x), cuda = row.cuda(x);
  if (ours == cuda) return {};
  return fmt::format("{}({:08X}): ours {:04X}, CUDA's {:04X}", row.name, bits, ours, cuda);
}

/// Second operands: zeros, ones, ends of the subnormals and normals, ties' makers, infinity, NaNs.
constexpr Bits kSecond[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x8400, 0x1400, 0x2BFF,
                            0x3555, 0x3BFF, 0x3C00, 0xBC00, 0x3C01, 0xBE00, 0x4248, 0x5BFF, 0x7800,
                            0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFE00, 0x7FFF, 0xFFFF};

std::string disagreement(const Binary& row, Bits a, Bits b) {
  const Bits ours = row.ours(a, b), cuda = encoding(row.cuda(half_of(a), half_of(b)));
  if (ours == cuda) return {};
  return fmt::format("{}({:04X}, {:04X}): ours {:04X}, CUDA's {:04X}", row.name, a, b, ours, cuda);
}

std::string first_disagreement(const Binary& row) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    for (const Bits b : kSecond) {
      const auto a = static_cast<Bits>(code);
      std::string wrong = disagreement(row, a, b);
      if (wrong.empty()) wrong = disagreement(row, b, a);
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

TEST_CASE("__float2half_rn, _rz, _ru, _rd are CUDA's host code, sampled", "[cuda][number]") {
  for (const Narrowing& row : kNarrowing) {
    std::string wrong;
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32 && wrong.empty(); bits += 2039) {
      wrong = disagreement(row, static_cast<std::uint32_t>(bits));
    }
    for (unsigned code = 0; code < 0x10000 && wrong.empty(); ++code) {  // and beside every half
      const auto centre = bit_cast<std::uint32_t>(__half2float(half_of(static_cast<Bits>(code))));
      for (const std::uint32_t bits : {centre - 1, centre, centre + 1}) {
        if (wrong.empty()) wrong = disagreement(row, bits);
      }
    }
    REQUIRE(wrong == "");
  }
}

TEST_CASE("__float2half_rn, _rz, _ru, _rd are CUDA's host code, all 2^32 inputs",
          "[cuda][number][.exhaustive]") {
  for (const Narrowing& row : kNarrowing) {
    std::atomic<std::uint64_t> wrong = 0;  // an input that differs, plus one
    parallel_for(1U << 12, [&](std::uint64_t block) {
      for (std::uint64_t bits = block << 20; bits < (block + 1) << 20; ++bits) {
        const auto x = bit_cast<float>(static_cast<std::uint32_t>(bits));
        if (row.ours(x) != row.cuda(x)) wrong = bits + 1;
      }
    });
    CAPTURE(row.name);
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("__half2float is CUDA's host code, all 65,536 inputs", "[cuda][number]") {
  unsigned wrong = 0;  // an input that differs, plus one
  for (unsigned code = 0; code < 0x10000; ++code) {
    const auto a = static_cast<Bits>(code);
    const auto ours = bit_cast<std::uint32_t>(cuda_half::half2float(a));
    if (ours != bit_cast<std::uint32_t>(__half2float(half_of(a)))) wrong = code + 1;
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("__double2half is CUDA's host code beside every half and every tie", "[cuda][number]") {
  std::string wrong;
  const auto compare = [&](double x) {
    const Bits ours = cuda_half::double2half(x), cuda = encoding(__double2half(x));
    if (ours != cuda) wrong = fmt::format("{:a}: ours {:04X}, CUDA's {:04X}", x, ours, cuda);
  };
  for (unsigned code = 0; code < 0x7C00; ++code) {
    const double low = __half2float(half_of(static_cast<Bits>(code)));
    const double high =
        code == 0x7BFF ? 65536.0 : __half2float(half_of(static_cast<Bits>(code + 1)));
    for (const double x : {low, (low + high) / 2}) {
      for (const double sign : {1.0, -1.0}) {
        compare(sign * x);
        compare(sign * std::nextafter(x, 0.0));
        compare(sign * std::nextafter(x, 1e300));
      }
    }
  }
  compare(std::nan(""));
  compare(-HUGE_VAL);
  REQUIRE(wrong == "");
}

TEST_CASE("binary half operations are CUDA's host code, all 65,536 inputs with 27 others",
          "[cuda][number]") {
  for (const Binary& row : kBinary) REQUIRE(first_disagreement(row) == "");
}

}  // namespace test_half_host
