// SPDX-License-Identifier: Apache-2.0
// What holds for all array operations: lengths, alignment, places, threads, the caller's
// floating-point environment, and what is refused.
#include "halfscope/array/array.hpp"

#include <tbb/global_control.h>

#include <algorithm>
#include <stdexcept>

#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "inputs.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace test_array {

using namespace arrays;
using Catch::Matchers::Contains;

using Words = std::vector<std::uint16_t>;
using View = std::span<const std::uint16_t>;

constexpr Modes kDefault = {};
constexpr Modes kByVectors = {.rounding = Rounding::ties_to_away};
constexpr Modes kStochastic = {.rounding = Rounding::stochastic};

/// Everything there is, on part of the inputs, as one vector of bits; flags last.
struct Everything {
  std::vector<float> values;
  Words a, b, c;

  explicit Everything(std::size_t n) {
    std::mt19937 random(5);
    const std::vector<float> hard = hard_floats(kBinary16);
    for (std::size_t i = 0; i < n; ++i) {
      values.push_back(hard[random() % hard.size()]);
      a.push_back(static_cast<std::uint16_t>(random()));
      b.push_back(static_cast<std::uint16_t>(random()));
      c.push_back(static_cast<std::uint16_t>(random()));
    }
  }

  std::vector<std::uint32_t> results(std::size_t first, std::size_t n,
                                     const ArrayOptions& options) const {
    Words narrow(n), sum(n), product(n), fused(n);
    std::vector<float> quantised(values.begin() + static_cast<std::ptrdiff_t>(first),
                                 values.begin() + static_cast<std::ptrdiff_t>(first + n));
    std::vector<float> wide(n);
    const View x = View(a).subspan(first, n), y = View(b).subspan(first, n);
    const View z = View(c).subspan(first, n);
    const Flags flags[] = {convert(kBinary16, std::span(values).subspan(first, n), narrow, options),
                           quantise(kBinary16, quantised, options),
                           convert(kBinary16, x, wide, options),
                           add(kBinary16, x, y, sum, options),
                           multiply(kBinary16, x, y, product, options),
                           fused_multiply_add(kBinary16, x, y, z, fused, options)};
    std::vector<std::uint32_t> all;
    for (const Words& words : {narrow, sum, product, fused}) {
      all.insert(all.end(), words.begin(), words.end());
    }
    for (const float v : quantised) all.push_back(std::bit_cast<std::uint32_t>(v));
    for (const float v : wide) all.push_back(std::bit_cast<std::uint32_t>(v));
    for (const Flags& f : flags) {
      all.push_back((f.invalid ? 1u : 0) | (f.overflow ? 2u : 0) | (f.underflow ? 4u : 0) |
                    (f.inexact ? 8u : 0) | (f.divide_by_zero ? 16u : 0));
    }
    return all;
  }
};

/// The same one element at a time by the scalar functions.
std::vector<std::uint32_t> scalar_results(const Everything& e, std::size_t first, std::size_t n,
                                          const ArrayOptions& options) {
  std::vector<std::uint32_t> parts[6];
  Flags flags[6];
  for (std::size_t i = 0; i < n; ++i) {
    const Modes m = modes_of(options, i);
    const std::size_t k = first + i;
    const Rounded narrow = from_float(kBinary16, e.values[k], m);
    const Rounded r[] = {
        narrow,
        add(kBinary16, e.a[k], e.b[k], m),
        multiply(kBinary16, e.a[k], e.b[k], m),
        fused_multiply_add(kBinary16, e.a[k], e.b[k], e.c[k], m),
        {convert(kBinary32, kBinary16, narrow.bits, {.nan = m.nan}).bits, narrow.flags},
        convert(kBinary32, kBinary16, e.a[k], m)};
    for (int part = 0; part < 6; ++part) {
      parts[part].push_back(static_cast<std::uint32_t>(r[part].bits));
      flags[part] |= r[part].flags;
    }
  }
  std::vector<std::uint32_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  for (const int part : {0, 4, 5, 1, 2, 3}) {
    const Flags& f = flags[part];
    all.push_back((f.invalid ? 1u : 0) | (f.overflow ? 2u : 0) | (f.underflow ? 4u : 0) |
                  (f.inexact ? 8u : 0) | (f.divide_by_zero ? 16u : 0));
  }
  return all;
}

TEST_CASE("every length and every alignment", "[array]") {
  const Everything all(400);
  std::string wrong;
  for (const std::string& target : targets()) {
    const OnTarget only(target);
    for (const Modes& modes : {kDefault, kByVectors, kStochastic}) {
      for (std::size_t n = 0; n <= 133; ++n) {
        const std::size_t first = n % 67;
        const ArrayOptions options = {.modes = modes, .seed = n, .first_index = n, .threads = 1};
        if (all.results(first, n, options) != scalar_results(all, first, n, options)) {
          wrong = fmt::format("{}, {} elements, {}", target, n, text(modes));
        }
      }
    }
  }
  REQUIRE(wrong == "");
}

TEST_CASE("elements around the output stay as they are", "[array]") {
  for (const std::string& target : targets()) {
    const OnTarget only(target);
    for (std::size_t n = 0; n < 100; ++n) {
      const std::vector<float> in(n, 1.5f);
      Words out(n + 2, 0xABCD);
      convert(kBinary16, in, std::span(out).subspan(1, n), {.threads = 1});
      REQUIRE((out.front() == 0xABCD && out.back() == 0xABCD));
      add(kBinary16, Words(n, 0x3C00), Words(n, 0x3C00), std::span(out).subspan(1, n));
      REQUIRE((out.front() == 0xABCD && out.back() == 0xABCD));
      REQUIRE(std::count(out.begin(), out.end(), 0x4000) == static_cast<std::ptrdiff_t>(n));
    }
  }
}

TEST_CASE("each flag alone, at every place of a vector", "[array][flags]") {
  struct Row {
    const char* what;
    float x;
    Flags flags;
  };
  const Row rows[] = {
      {"exact", 1.0f, {}},
      {"inexact", 1.0f + 0x1p-20f, {.inexact = true}},
      {"underflow", 0x1p-30f, {.underflow = true, .inexact = true}},
      {"exact subnormal", 0x1p-24f, {}},
      {"overflow", 70000.0f, {.overflow = true, .inexact = true}},
      {"quiet NaN", std::bit_cast<float>(0x7FC00000), {}},
      {"signaling NaN", std::bit_cast<float>(0x7F800001), {.invalid = true}},
      {"infinity", std::bit_cast<float>(0xFF800000), {}},
  };
  std::string wrong;
  for (const std::string& target : targets()) {
    const OnTarget only(target);
    for (const Modes& modes : {kDefault, kByVectors}) {
      for (const Row& row : rows) {
        for (std::size_t place = 0; place < 100; ++place) {
          std::vector<float> in(100, 2.0f);
          in[place] = row.x;
          Words out(100);
          const bool converted =
              convert(kBinary16, in, out, {.modes = modes, .threads = 1}) == row.flags;
          const bool quantised =
              quantise(kBinary16, in, {.modes = modes, .threads = 1}) == row.flags;
          if (!converted || !quantised) {
            wrong = fmt::format("{}: {} at {}", target, row.what, place);
          }
        }
      }
    }
  }
  REQUIRE(wrong == "");
}

TEST_CASE("output in the place of an input", "[array]") {
  const Everything all(1000);
  const View a(all.a), b(all.b), c(all.c);
  for (const std::string& target : targets()) {
    const OnTarget only(target);
    for (const Format& f : {kBinary16, kBfloat16}) {
      Words sum(1000), fused(1000);
      add(f, a, b, sum);
      fused_multiply_add(f, a, b, c, fused);
      Words in_a = all.a, in_b = all.b, twice = all.a, in_c = all.c, doubled(1000);
      add(f, in_a, b, in_a);
      add(f, a, in_b, in_b);
      fused_multiply_add(f, a, b, in_c, in_c);
      add(f, a, a, doubled);
      add(f, twice, twice, twice);
      REQUIRE(in_a == sum);
      REQUIRE(in_b == sum);
      REQUIRE(in_c == fused);
      REQUIRE(twice == doubled);
    }
  }
}

TEST_CASE("any number of threads gives the same bits and flags", "[array][threads]") {
  // More than there are cores, on any machine.
  const tbb::global_control threads_allowed(tbb::global_control::max_allowed_parallelism, 7);
  const Everything all(300001);  // several parts and a bit
  for (const Modes& modes : {kDefault, kByVectors, kStochastic}) {
    ArrayOptions options = {.modes = modes, .seed = 42, .first_index = 7, .threads = 1};
    const std::vector<std::uint32_t> one = all.results(1, 300000, options);
    REQUIRE(one == scalar_results(all, 1, 300000, options));
    for (const int threads : {0, 2, 7}) {
      options.threads = threads;
      REQUIRE(all.results(1, 300000, options) == one);
    }
  }
}

TEST_CASE("large arrays, written past the caches, at odd addresses", "[array]") {
  constexpr std::size_t kCount = (std::size_t{9} << 20) + 5;  // 18 MiB of encodings
  const std::vector<float> hard = hard_floats(kBinary16);
  std::vector<float> in(kCount + 1);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = hard[i * 7919 % hard.size()];
  Words out(kCount + 1), again(kCount + 1), sum(kCount + 1);
  std::string wrong;
  for (const std::string& target : targets()) {
    if (kOneIn > 1 && target != targets().front()) continue;
    const OnTarget only(target);
    for (const Modes& modes : {kDefault, Modes{.nan = NanPolicy::cuda}, kByVectors}) {
      const ArrayOptions options = {.modes = modes, .threads = 2};
      convert(kBinary16, std::span(in).subspan(1), std::span(out).subspan(1), options);
      for (std::size_t i = 0; i < kCount; i += 13 * kOneIn) {
        if (out[i + 1] != from_float(kBinary16, in[i + 1], modes).bits) wrong = text(modes);
      }
      add(kBinary16, View(out).subspan(1), View(out).subspan(1), std::span(sum).subspan(1),
          options);
      for (std::size_t i = 0; i < kCount; i += 17 * kOneIn) {
        if (sum[i + 1] != add(kBinary16, out[i + 1], out[i + 1], modes).bits) wrong = text(modes);
      }
      std::vector<float> wide(kCount + 1);
      convert(kBinary16, View(out).subspan(1), std::span(wide).subspan(1), options);
      convert(kBinary16, std::span(wide).subspan(1), std::span(again).subspan(1), options);
      REQUIRE(std::equal(out.begin() + 1, out.end(), again.begin() + 1));
    }
  }
  REQUIRE(wrong == "");
}

#if defined(__x86_64__)
TEST_CASE("the caller's MXCSR changes nothing and is not changed", "[array][environment]") {
  constexpr unsigned kMasked = 0x1F80, kUp = 0x4000, kDown = 0x2000, kFlush = 0x8000, kZeros = 0x40;
  const Everything all(300);
  const unsigned own = _mm_getcsr();
  for (const std::string& target : targets()) {
    const OnTarget only(target);
    for (const Modes& modes : {kDefault, kByVectors, kStochastic}) {
      const ArrayOptions options = {.modes = modes, .threads = 1};
      const std::vector<std::uint32_t> want = scalar_results(all, 3, 222, options);
      // Another direction, subnormals flushed, flags raised before, exceptions that would trap.
      for (const unsigned control : {kMasked, kMasked | kUp | kFlush, kMasked | kDown | kZeros,
                                     kMasked | 0x3Fu, 0u, 0x3Du}) {
        std::vector<std::uint32_t> found;
        if ((control & kMasked) == kMasked) {
          _mm_setcsr(control);
          found = all.results(3, 222, options);
          const unsigned after = _mm_getcsr();
          _mm_setcsr(own);
          CHECK(after == control);
        } else {  // unmasked, and no flag raised: only the calls themselves may run
          Words out(222);
          std::vector<float> wide(222);
          const std::span<const float> in = std::span(all.values).subspan(3, 222);
          _mm_setcsr(control & ~0x3Fu);
          for (const Format f : {kBinary16, kBfloat16}) {
            convert(f, in, out, options);
            convert(f, View(out), wide, options);
            add(f, View(all.a).first(222), View(all.b).first(222), out, options);
          }
          quantise(kTf32, wide, options);
          fused_multiply_add(kBinary16, View(all.a).first(222), View(all.b).first(222),
                             View(all.c).first(222), out, options);
          const unsigned after = _mm_getcsr();
          _mm_setcsr(own);
          CHECK(after == (control & ~0x3Fu));
          continue;
        }
        REQUIRE(found == want);
      }
    }
  }
}
#endif

TEST_CASE("what does not fit is refused by name", "[array][errors]") {
  const std::vector<float> values(3);
  const Words words(3), four(4);
  const std::vector<std::uint8_t> bytes(3);
  Words out(3);
  std::vector<std::uint8_t> out_bytes(3);
  std::vector<float> out_values(3);
  CHECK_THROWS_WITH(convert(kBinary16, std::span(values).first(2), out),
                    Contains("convert") && Contains("2") && Contains("3"));
  CHECK_THROWS_WITH(convert(kFloat8E4M3, values, out), Contains("e4m3"));
  CHECK_THROWS_WITH(convert(kBinary16, values, out_bytes), Contains("binary16"));
  CHECK_THROWS_WITH(convert(kTf32, values, out), Contains("tf32"));
  CHECK_THROWS_WITH(convert(kBinary16, bytes, out_values), Contains("binary16"));
  CHECK_THROWS_WITH(convert(kFloat8E5M2, words, out_values), Contains("e5m2"));
  CHECK_THROWS_WITH(quantise(kBinary64, out_values), Contains("binary64"));
  CHECK_THROWS_WITH(quantise({5, 1023, 16}, out_values), Contains("emax 1023"));
  CHECK_THROWS_WITH(add(kBinary16, words, four, out),
                    Contains("add") && Contains("3") && Contains("4"));
  CHECK_THROWS_WITH(multiply(kBinary16, four, four, out), Contains("multiply") && Contains("4"));
  CHECK_THROWS_WITH(fused_multiply_add(kBinary16, words, words, four, out), Contains("4"));
  CHECK_THROWS_AS(add(kFloat8E4M3, words, words, out), std::invalid_argument);
  CHECK(add(kBinary16, View(), View(), std::span<std::uint16_t>()) == Flags{});
}

}  // namespace test_array
