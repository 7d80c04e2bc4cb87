// SPDX-License-Identifier: Apache-2.0
// Conversions between binary16, binary32 and the formats of 8 bits and fewer against the toolkit's
// own host code: cuda_fp8.h, and cuda_fp6.h and cuda_fp4.h where it has them (CUDA 12.8).
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#if __has_include(<cuda_fp6.h>) && __has_include(<cuda_fp4.h>)
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#define HALFSCOPE_TEST_FP6 1
#endif
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/scale_e8m0.hpp"

namespace test_small_host {

using namespace halfscope;

__half_raw half_of(std::uint64_t bits) {
  __half_raw raw;
  raw.x = static_cast<std::uint16_t>(bits);
  return raw;
}

float float_of(std::uint64_t bits) {
  return detail::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

/// Compares ours with CUDA's for every half (from_half) and for floats (from_float): every 65,521st
/// pattern, and every half with its float neighbours. Empty, or the first that differs.
template <typename FromHalf, typename FromFloat>
std::string disagreement(Format to, const Modes& modes, FromHalf from_half, FromFloat from_float) {
  const auto check = [&](Format from, std::uint64_t bits, std::uint64_t cuda) -> std::string {
    const std::uint64_t ours = convert(to, from, bits, modes).bits;
    if (ours == cuda) return {};
    return fmt::format("{:X} of {} bits: ours {:02X}, CUDA's {:02X}", bits, from.width, ours, cuda);
  };
  std::string wrong;
  for (std::uint64_t half = 0; half < 0x10000 && wrong.empty(); ++half) {
    wrong = check(kBinary16, half, from_half(half_of(half)));
    const std::uint64_t centre = convert(kBinary32, kBinary16, half).bits;
    for (const std::uint64_t bits : {centre - 1, centre, centre + 1, half * 65521}) {
      const std::uint64_t pattern = bits & 0xFFFFFFFF;
      if (wrong.empty()) wrong = check(kBinary32, pattern, from_float(float_of(pattern)));
    }
  }
  return wrong;
}

/// Every encoding of `from` as a half.
template <typename ToHalf>
std::string widening_disagreement(Format from, ToHalf to_half) {
  for (std::uint64_t bits = 0; bits <= from.magnitude_mask() * 2 + 1; ++bits) {
    const std::uint64_t ours = convert(kBinary16, from, bits, {.nan = NanPolicy::cuda}).bits;
    const std::uint64_t cuda = to_half(static_cast<std::uint8_t>(bits)).x;
    if (ours != cuda) {
      return fmt::format("{:02X}: ours {:04X}, CUDA's {:04X}", bits, ours, cuda);
    }
  }
  return {};
}

struct Float8 {
  const char* name;
  Format format;
  __nv_fp8_interpretation_t cuda;
};

constexpr Float8 kFloat8[] = {{"e4m3", kFloat8E4M3, __NV_E4M3}, {"e5m2", kFloat8E5M2, __NV_E5M2}};

TEST_CASE("E4M3 and E5M2 are CUDA's host code, saturating and not", "[cuda][number]") {
  for (const Float8& row : kFloat8) {
    for (const bool saturate : {false, true}) {
      const __nv_saturation_t mode = saturate ? __NV_SATFINITE : __NV_NOSAT;
      CAPTURE(row.name, saturate);
      REQUIRE(disagreement(
                  row.format, {.nan = NanPolicy::cuda, .saturate = saturate},
                  [&](__half_raw x) { return __nv_cvt_halfraw_to_fp8(x, mode, row.cuda); },
                  [&](float x) { return __nv_cvt_float_to_fp8(x, mode, row.cuda); }) == "");
    }
    REQUIRE(widening_disagreement(row.format, [&](std::uint8_t bits) {
              return __nv_cvt_fp8_to_halfraw(bits, row.cuda);
            }) == "");
  }
}

#if HALFSCOPE_TEST_FP6

TEST_CASE("E3M2, E2M3 and E2M1 are CUDA's host code, to nearest and toward zero",
          "[cuda][number]") {
  struct Row {
    Rounding rounding;
    cudaRoundMode cuda;
  };
  for (const Row& row :
       {Row{Rounding::ties_to_even, cudaRoundNearest}, Row{Rounding::toward_zero, cudaRoundZero}}) {
    const Modes modes = {.rounding = row.rounding, .nan = NanPolicy::cuda};
    const auto fp6 = [&](auto x, __nv_fp6_interpretation_t format) {
      if constexpr (std::is_same_v<decltype(x), float>) {
        return __nv_cvt_float_to_fp6(x, format, row.cuda);
      } else {
        return __nv_cvt_halfraw_to_fp6(x, format, row.cuda);
      }
    };
    const auto e3m2 = [&](auto x) { return fp6(x, __NV_E3M2); };
    const auto e2m3 = [&](auto x) { return fp6(x, __NV_E2M3); };
    REQUIRE(disagreement(kFloat6E3M2, modes, e3m2, e3m2) == "");
    REQUIRE(disagreement(kFloat6E2M3, modes, e2m3, e2m3) == "");
    REQUIRE(disagreement(
                kFloat4E2M1, modes,
                [&](__half_raw x) { return __nv_cvt_halfraw_to_fp4(x, __NV_E2M1, row.cuda); },
                [&](float x) { return __nv_cvt_float_to_fp4(x, __NV_E2M1, row.cuda); }) == "");
  }
}

TEST_CASE("every E3M2, E2M3 and E2M1 as a half is CUDA's host code", "[cuda][number]") {
  CHECK(widening_disagreement(kFloat6E3M2, [](std::uint8_t bits) {
          return __nv_cvt_fp6_to_halfraw(bits, __NV_E3M2);
        }) == "");
  CHECK(widening_disagreement(kFloat6E2M3, [](std::uint8_t bits) {
          return __nv_cvt_fp6_to_halfraw(bits, __NV_E2M3);
        }) == "");
  CHECK(widening_disagreement(kFloat4E2M1, [](std::uint8_t bits) {
          return __nv_cvt_fp4_to_halfraw(bits, __NV_E2M1);
        }) == "");
}

TEST_CASE("E8M0 scales are CUDA's host code", "[cuda][number]") {
  std::string wrong;
  for (unsigned code = 0; code < 0xFF; ++code) {  // CUDA's NaN is 0x7FFF in bfloat16, ours quiet
    const auto scale = static_cast<std::uint8_t>(code);
    const std::uint32_t cuda = std::uint32_t{__nv_cvt_e8m0_to_bf16raw(scale).x} << 16;
    if (detail::bit_cast<std::uint32_t>(e8m0_to_float(scale)) != cuda) {
      wrong = fmt::format("scale {:02X}: CUDA's {:08X}", code, cuda);
    }
  }
  // Toward zero is floor(log2 x) and up is ceil(log2 x), clamped; x finite and positive.
  for (std::uint64_t bits = 1; bits < 0x7F800000 && wrong.empty(); bits += 4099) {
    const float x = float_of(bits);
    int e = 0;
    const bool power = std::frexp(x, &e) == 0.5F;  // x = f * 2^e, f in [0.5, 1)
    const int down = __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundZero);
    const int up = __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf);
    if (down != e8m0_from_exponent(e - 1) || up != e8m0_from_exponent(power ? e - 1 : e)) {
      wrong = fmt::format("{:08X}: CUDA's {:02X} and {:02X}", bits, down, up);
    }
  }
  REQUIRE(wrong == "");
}

#endif  // HALFSCOPE_TEST_FP6

}  // namespace test_small_host
