// SPDX-License-Identifier: Apache-2.0
// Conversions and quantisation of arrays against the scalar emulator, for every mode and every set
// of instructions that this processor has.
#include "catch.hpp"
#include "inputs.hpp"

namespace test_convert {

using namespace arrays;

constexpr Format kNarrow[] = {kBinary16,   kBfloat16,   {6, 31, 12}, kFloat8E4M3,
                              kFloat8E5M2, kFloat6E3M2, kFloat6E2M3, kFloat4E2M1};

const std::vector<Modes> kAllModes = all_modes();
const std::vector<std::string> kTargets = targets();

struct Expected {
  std::vector<std::uint64_t> bits;
  Flags flags;
};

template <class Scalar>
Expected expected(std::size_t n, const ArrayOptions& options, const Scalar& scalar) {
  Expected e;
  for (std::size_t i = 0; i < n; ++i) {
    const Rounded r = scalar(i, modes_of(options, i));
    e.bits.push_back(r.bits);
    e.flags |= r.flags;
  }
  return e;
}

template <class T>
std::uint64_t bits_of(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(x);
  } else {
    return x;
  }
}

/// Empty, or the first difference.
template <class Out>
std::string difference(const Expected& want, const std::vector<Out>& out, const Flags& flags) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (bits_of(out[i]) != want.bits[i]) {
      return fmt::format("element {}: {:X}, not {:X}", i, bits_of(out[i]), want.bits[i]);
    }
  }
  if (!(flags == want.flags)) return "flags " + text(flags) + ", not " + text(want.flags);
  return {};
}

template <class Out>
std::string narrow_difference(Format to, const std::vector<float>& in,
                              const ArrayOptions& options) {
  const Expected want = expected(in.size(), options, [&](std::size_t i, const Modes& modes) {
    return convert(to, kBinary32, std::bit_cast<std::uint32_t>(in[i]), modes);
  });
  for (const std::string& target : kTargets) {
    const OnTarget only(target);
    std::vector<Out> out(in.size());
    const Flags flags = convert(to, std::span<const float>(in), std::span<Out>(out), options);
    const std::string found = difference(want, out, flags);
    if (!found.empty()) return target + " " + found;
  }
  return {};
}

std::string quantise_difference(Format f, const std::vector<float>& in,
                                const ArrayOptions& options) {
  const Expected want = expected(in.size(), options, [&](std::size_t i, const Modes& modes) {
    const Rounded narrow = convert(f, kBinary32, std::bit_cast<std::uint32_t>(in[i]), modes);
    return Rounded{convert(kBinary32, f, narrow.bits, {.nan = modes.nan}).bits, narrow.flags};
  });
  for (const std::string& target : kTargets) {
    const OnTarget only(target);
    std::vector<float> values = in;
    const Flags flags = quantise(f, std::span<float>(values), options);
    const std::string found = difference(want, values, flags);
    if (!found.empty()) return target + " " + found;
  }
  return {};
}

template <class In>
std::string widen_difference(Format from, const std::vector<In>& in, const ArrayOptions& options) {
  const Expected want = expected(in.size(), options, [&](std::size_t i, const Modes& modes) {
    return convert(kBinary32, from, in[i], modes);
  });
  for (const std::string& target : kTargets) {
    const OnTarget only(target);
    std::vector<float> out(in.size());
    const Flags flags = convert(from, std::span<const In>(in), std::span<float>(out), options);
    const std::string found = difference(want, out, flags);
    if (!found.empty()) return target + " " + found;
  }
  return {};
}

ArrayOptions one_thread(const Modes& modes) {
  return {.modes = modes, .seed = 0x123456789ABCDEF0, .first_index = 3, .threads = 1};
}

std::string name(Format f) {
  return fmt::format("precision {} emax {} width {}", f.precision, f.emax, f.width);
}

TEST_CASE("binary32 to every narrow format, all modes", "[array][convert]") {
  for (const Format& f : kNarrow) {
    const std::vector<float> in = hard_floats(f);
    for (const Modes& modes : kAllModes) {
      INFO(name(f) << ", " << text(modes));
      const std::string found = f.width > 8
                                    ? narrow_difference<std::uint16_t>(f, in, one_thread(modes))
                                    : narrow_difference<std::uint8_t>(f, in, one_thread(modes));
      REQUIRE(found == "");
    }
  }
}

TEST_CASE("quantise, every format, all modes", "[array][quantise]") {
  std::vector<Format> formats(std::begin(kNarrow), std::end(kNarrow));
  formats.insert(formats.end(), {kTf32, kBinary32});
  for (const Format& f : formats) {
    const std::vector<float> in = hard_floats(f);
    for (const Modes& modes : kAllModes) {
      INFO(name(f) << ", " << text(modes));
      REQUIRE(quantise_difference(f, in, one_thread(modes)) == "");
    }
  }
}

TEST_CASE("binary16 next to every boundary, F16C's modes", "[array][convert][quantise]") {
  std::vector<float> in;
  for (std::uint32_t twice = 0; twice <= 2 * 0x7C00 + 2; twice += kOneIn) {
    const double low = to_double(kBinary16, twice / 2);
    const double high = twice / 2 + 1 < 0x7C00 ? to_double(kBinary16, twice / 2 + 1) : 65536.0;
    const double middle = twice % 2 == 0 ? low : (low + high) / 2;
    const auto centre = static_cast<std::uint32_t>(from_double(kBinary32, middle).bits);
    for (std::uint32_t offset = 0; offset < 3; ++offset) {
      in.push_back(std::bit_cast<float>(centre + offset - 1));
      in.push_back(std::bit_cast<float>((centre + offset - 1) ^ 0x80000000));
    }
  }
  for (const Modes& modes : f16c_modes()) {
    INFO(text(modes));
    REQUIRE(narrow_difference<std::uint16_t>(kBinary16, in, one_thread(modes)) == "");
    REQUIRE(quantise_difference(kBinary16, in, one_thread(modes)) == "");
  }
}

TEST_CASE("all encodings of narrow formats to binary32, all modes", "[array][convert]") {
  std::vector<std::uint16_t> words(65536);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  for (const Format& f : kNarrow) {
    for (const Modes& modes : kAllModes) {
      const bool one_of_each = modes.rounding == Rounding::ties_to_even;  // exact: no direction
      if (f.width > 8 && !one_of_each) continue;
      INFO(name(f) << ", " << text(modes));
      const std::string found = f.width > 8 ? widen_difference(f, words, one_thread(modes))
                                            : widen_difference(f, bytes, one_thread(modes));
      REQUIRE(found == "");
    }
  }
}

TEST_CASE("a format beyond binary32's exponents", "[array][convert]") {
  constexpr Format kWide = {5, 1023, 16};
  const std::vector<float> in = hard_floats(kBfloat16);
  std::vector<std::uint16_t> words(65536);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  for (const Rounding rounding : kRoundings) {
    const ArrayOptions options = one_thread({.rounding = rounding});
    REQUIRE(narrow_difference<std::uint16_t>(kWide, in, options) == "");
    REQUIRE(widen_difference(kWide, words, options) == "");
  }
}

}  // namespace test_convert
