// SPDX-License-Identifier: Apache-2.0
// The array operations on the device: every twin gives the bits and the flags of its CPU function.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cuda/device.hpp"
#include "cuda/skip.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/array/array_cuda.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/format.hpp"

namespace test_array {

using namespace halfscope;

using Halves = std::vector<std::uint16_t>;
using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

/// Every rounding with the defaults, then each other mode alone, then all of them.
std::vector<ArrayOptions> every_option() {
  std::vector<Modes> modes;
  for (const Rounding rounding :
       {Rounding::ties_to_even, Rounding::ties_to_away, Rounding::toward_zero, Rounding::upward,
        Rounding::downward, Rounding::to_odd, Rounding::stochastic}) {
    modes.push_back({.rounding = rounding});
    modes.push_back({.rounding = rounding, .tininess = Tininess::before_rounding});
    modes.push_back({.rounding = rounding, .nan = NanPolicy::canonical});
    modes.push_back({.rounding = rounding, .nan = NanPolicy::cuda});
    modes.push_back({.rounding = rounding, .denormals_are_zero = true});
    modes.push_back({.rounding = rounding, .flush_to_zero = true});
    modes.push_back({.rounding = rounding, .flush_to_zero = true, .flush = Flush::subnormal});
    modes.push_back({.rounding = rounding, .saturate = true, .random_bits = 7});
    modes.push_back({.rounding = rounding,
                     .tininess = Tininess::before_rounding,
                     .nan = NanPolicy::cuda,
                     .denormals_are_zero = true,
                     .flush_to_zero = true,
                     .saturate = true});
  }
  std::vector<ArrayOptions> out;
  for (const Modes& m : modes) out.push_back({.modes = m, .seed = 2026, .first_index = 5});
  return out;
}

/// Each half as binary32 with its neighbours and the midpoint after it, then mixed patterns: zeros,
/// subnormals, ties, overflows and NaNs, and no multiple of any block size.
Floats float_inputs() {
  Floats out;
  const auto push = [&](std::uint32_t bits) { out.push_back(detail::bit_cast<float>(bits)); };
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const auto bits = static_cast<std::uint32_t>(convert(kBinary32, kBinary16, half).bits);
    for (const std::uint32_t offset : {0U, 1U, 0xFFFFFFFFU, 0x1000U}) push(bits + offset);
  }
  for (std::uint32_t i = 0; i < 30011; ++i) push(i * 2654435761U);
  return out;
}

/// `count` encodings, all of them in an order that depends on the step.
Halves half_inputs(std::uint32_t step) {
  Halves out(100003);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::uint16_t>(i * step + i / 7);
  return out;
}

/// The twin's bits and flags against the CPU's; `initial` is what `out` holds at first.
template <typename Out, typename Cpu, typename Gpu>
std::string disagreement(std::vector<Out> initial, Cpu cpu, Gpu gpu) {
  const auto device_out = device::copy_of(initial);
  const Flags got_flags = gpu(device_out.get());
  const std::vector<Out> got = device::fetch(device_out.get(), initial.size());
  const Flags want_flags = cpu(std::span<Out>(initial));
  for (std::size_t i = 0; i < initial.size(); ++i) {
    if (std::memcmp(&got[i], &initial[i], sizeof(Out)) == 0) continue;
    return fmt::format("element {}", i);
  }
  return got_flags == want_flags ? "" : "flags";
}

std::string describe(const ArrayOptions& o, const Format& f) {
  return fmt::format(
      "precision {} width {} rounding {} tininess {} nan {} daz {} ftz {} saturate {}", f.precision,
      f.width, static_cast<int>(o.modes.rounding), static_cast<int>(o.modes.tininess),
      static_cast<int>(o.modes.nan), o.modes.denormals_are_zero, o.modes.flush_to_zero,
      o.modes.saturate);
}

template <typename Storage>
void compare_conversions(const Format& f, const std::vector<Storage>& codes) {
  const Floats floats = float_inputs();
  const auto device_floats = device::copy_of(floats);
  const auto device_codes = device::copy_of(codes);
  const auto n = static_cast<std::int64_t>(floats.size());
  const auto m = static_cast<std::int64_t>(codes.size());
  for (const ArrayOptions& o : every_option()) {
    INFO(describe(o, f));
    REQUIRE(disagreement(
                std::vector<Storage>(floats.size()),
                [&](auto out) { return convert(f, floats, out, o); },
                [&](auto* out) { return cuda::convert(f, device_floats.get(), out, n, o); }) == "");
    REQUIRE(disagreement(
                Floats(codes.size()),
                [&](auto out) { return convert(f, std::span<const Storage>(codes), out, o); },
                [&](auto* out) { return cuda::convert(f, device_codes.get(), out, m, o); }) == "");
  }
}

void compare_arithmetic(const Format& f) {
  const Halves a = half_inputs(1), b = half_inputs(40503), c = half_inputs(30011);
  const auto x = device::copy_of(a), y = device::copy_of(b), z = device::copy_of(c);
  const auto n = static_cast<std::int64_t>(a.size());
  for (const ArrayOptions& o : every_option()) {
    INFO(describe(o, f));
    REQUIRE(disagreement(
                Halves(a.size()), [&](auto out) { return add(f, a, b, out, o); },
                [&](auto* out) { return cuda::add(f, x.get(), y.get(), out, n, o); }) == "");
    REQUIRE(disagreement(
                Halves(a.size()), [&](auto out) { return multiply(f, a, b, out, o); },
                [&](auto* out) { return cuda::multiply(f, x.get(), y.get(), out, n, o); }) == "");
    REQUIRE(disagreement(
                Halves(a.size()), [&](auto out) { return fused_multiply_add(f, a, b, c, out, o); },
                [&](auto* out) {
                  return cuda::fused_multiply_add(f, x.get(), y.get(), z.get(), out, n, o);
                }) == "");
  }
}

/// The message of the std::exception of type E that the call throws.
template <typename E, typename Call>
std::string message(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST_CASE("convert on the device, 16-bit formats", "[cuda][array][gpu][slow]") {
  if (skipped()) return;
  for (const Format& f : {kBinary16, kBfloat16}) compare_conversions(f, half_inputs(1));
}

TEST_CASE("convert on the device, formats of 8 bits and fewer", "[cuda][array][gpu][slow]") {
  if (skipped()) return;
  for (const Format& f : {kFloat8E4M3, kFloat8E5M2, kFloat6E3M2, kFloat6E2M3, kFloat4E2M1}) {
    Bytes codes;
    const auto mask = static_cast<unsigned>(f.sign_mask() | f.magnitude_mask());
    for (unsigned i = 0; i < 1031; ++i) codes.push_back(static_cast<std::uint8_t>(i & mask));
    compare_conversions(f, codes);
  }
}

TEST_CASE("quantise on the device, in place", "[cuda][array][gpu][slow]") {
  if (skipped()) return;
  const Floats floats = float_inputs();
  const auto n = static_cast<std::int64_t>(floats.size());
  for (const Format& f : {kBinary16, kBfloat16, kTf32, kFloat8E4M3, kFloat8E5M2, kFloat4E2M1}) {
    for (const ArrayOptions& o : every_option()) {
      INFO(describe(o, f));
      REQUIRE(disagreement(
                  floats, [&](auto out) { return quantise(f, out, o); },
                  [&](float* out) { return cuda::quantise(f, out, n, o); }) == "");
    }
  }
}

TEST_CASE("add, multiply, fused multiply-add on the device", "[cuda][array][gpu][slow]") {
  if (skipped()) return;
  for (const Format& f : {kBinary16, kBfloat16}) compare_arithmetic(f);
}

TEST_CASE("on the device the output may be an input, and lengths may be odd",
          "[cuda][array][gpu]") {
  if (skipped()) return;
  const Halves a = half_inputs(1), b = half_inputs(40503);
  const auto y = device::copy_of(b);
  for (const std::size_t n :
       {std::size_t{1}, std::size_t{31}, std::size_t{257}, std::size_t{1025}}) {
    const Halves start(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n));
    const std::span<const std::uint16_t> second(b.data(), n);
    const auto count = static_cast<std::int64_t>(n);
    REQUIRE(disagreement(
                start, [&](auto out) { return add(kBinary16, start, second, out); },
                [&](auto* out) { return cuda::add(kBinary16, out, y.get(), out, count); }) == "");
  }
}

TEST_CASE("a stream of the caller's own is waited for", "[cuda][array][gpu]") {
  if (skipped()) return;
  cudaStream_t stream = nullptr;
  device::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const Floats floats = float_inputs();
  const auto n = static_cast<std::int64_t>(floats.size());
  const std::string wrong = disagreement(
      floats, [&](auto out) { return quantise(kBinary16, out); },
      [&](float* out) { return cuda::quantise(kBinary16, out, n, {}, stream); });
  device::check(cudaStreamDestroy(stream));
  REQUIRE(wrong == "");
}

TEST_CASE("the twins refuse what their CPU functions refuse, device or not", "[cuda][array]") {
  const float* const floats = nullptr;
  std::uint16_t* const halves = nullptr;
  std::uint8_t* const bytes = nullptr;
  using Invalid = std::invalid_argument;
  CHECK(message<Invalid>([&] { cuda::convert(kFloat8E4M3, floats, halves, 0); }) ==
        "halfscope::cuda: encodings of 8 bits are not stored in 16");
  CHECK(message<Invalid>([&] { cuda::convert(kBinary16, floats, bytes, 0); }) ==
        "halfscope::cuda: encodings of 16 bits are not stored in 8");
  CHECK(message<Invalid>([&] { cuda::add(kTf32, halves, halves, halves, 0); }) ==
        "halfscope::cuda: encodings of 19 bits are not stored in 16");
  CHECK(message<Invalid>([&] { cuda::convert(kBinary16, floats, halves, -1); }) ==
        "halfscope::cuda: a count of -1");
  CHECK(
      message<Invalid>([&] { cuda::quantise(kBinary64, nullptr, 0); }) ==
      "halfscope::cuda::quantise: binary32 does not hold all values of 64 bits with precision 53");
  CHECK(cuda::convert(kBinary16, floats, halves, 0) == Flags{});
}

TEST_CASE("without a device the CUDA call that failed is named", "[cuda][array]") {
  if (device::available()) return;
  std::uint16_t* const halves = nullptr;
  const std::string what =
      message<std::runtime_error>([&] { cuda::multiply(kBinary16, halves, halves, halves, 1); });
  CHECK(what.rfind("CUDA: cudaGetDevice: ", 0) == 0);
}

}  // namespace test_array
