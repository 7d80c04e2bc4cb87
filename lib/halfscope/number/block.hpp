// SPDX-License-Identifier: Apache-2.0
// Blocks of the OCP Microscaling Formats (MX) 1.0: 32 elements of a small format share one E8M0
// scale. docs/numerics/emulator.md lists choices left open, and what other implementations do.
//
// Elements are encodings of at most 8 bits, one per byte; packing them more tightly is up to the
// caller. Element formats of MX: e5m2, e4m3, e3m2, e2m3, e2m1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "halfscope/number/bits.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/random.hpp"
#include "halfscope/number/require.hpp"
#include "halfscope/number/round.hpp"
#include "halfscope/number/scale_e8m0.hpp"

namespace halfscope {

inline constexpr int kMxBlockSize = 32;

/// Rule for the scale, a power of two, of a block whose largest magnitude is A > 0. The scale is
/// always clamped to E8M0's range.
enum class ScaleRule : std::uint8_t {
  floor,       ///< 2^(floor(log2 A) - emax): MX 1.0, 6.3. A up to 2^(emax+1) saturates
  round_even,  ///< like floor, after rounding A to the element's precision, ties to even
  round_up     ///< the least scale without saturation: NVIDIA's recipes for MXFP8
};

struct BlockOptions {
  ScaleRule rule = ScaleRule::floor;
  /// Modes for rounding the elements; overflow saturates even if `saturate` is false. For
  /// stochastic rounding `random` is ignored: element i draws R from (seed, first_index + i).
  Modes modes = {};
  std::uint64_t seed = 0;
  std::uint64_t first_index = 0;
};

struct BlockScale {
  std::uint8_t scale;
  Flags flags;  ///< union over all elements
};

namespace detail {

/// Returns the significand of a finite nonzero value, shifted so that its leading bit is bit 63.
HALFSCOPE_HD constexpr std::uint64_t left_aligned(const Unpacked& x) {
  return x.significand << (64 - bit_width(x.significand));
}

HALFSCOPE_HD constexpr Modes element_modes(const BlockOptions& options, std::size_t i) {
  Modes modes = options.modes;
  modes.saturate = true;
  if (modes.rounding == Rounding::stochastic) {
    require_random_bits(modes);
    modes.random = random_word(options.seed, options.first_index + i) >> (32 - modes.random_bits);
  }
  return modes;
}

HALFSCOPE_HD constexpr std::uint64_t binary32_bits(float x) { return bit_cast<std::uint32_t>(x); }

}  // namespace detail

/// Returns the scale of a block of `element`s. `largest`: its largest magnitude, finite and
/// nonzero.
HALFSCOPE_HD constexpr std::uint8_t block_scale(Format element, const Unpacked& largest,
                                                ScaleRule rule = ScaleRule::floor) {
  const std::uint64_t a = detail::left_aligned(largest);
  const std::uint64_t limit = detail::left_aligned(unpack(element, element.largest_finite()));
  const int k = largest.exponent + detail::bit_width(largest.significand) - 1 - element.emax;
  switch (rule) {
    case ScaleRule::floor: break;
    case ScaleRule::round_even:  // rounds up to the next binade if its first p + 1 bits are ones
      return e8m0_from_exponent(a >= ~(~std::uint64_t{0} >> (element.precision + 1)) ? k + 1 : k);
    case ScaleRule::round_up: return e8m0_from_exponent(a > limit ? k + 1 : k);
  }
  return e8m0_from_exponent(k);
}

/// Quantises `count` <= 32 binary32 values: element i is values[i] / scale rounded once. A block
/// with a NaN or an infinity gets the scale NaN, and its elements become NaN (zero if the element
/// format has no NaN); a block of zeros gets the least scale. The flags are convert()'s for
/// values[i] / scale, with `invalid` for a signaling NaN.
HALFSCOPE_HD constexpr BlockScale quantise_block(Format element, const float* values,
                                                 std::size_t count, std::uint8_t* elements,
                                                 const BlockOptions& options = {}) {
  std::uint64_t largest = 0;
  Flags flags;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = detail::binary32_bits(values[i]);
    const std::uint64_t magnitude = bits & kBinary32.magnitude_mask();
    if (magnitude > largest) largest = magnitude;  // DAZ keeps the scale
    flags.invalid |= is_signaling(kBinary32, bits);
  }
  if (largest >= kBinary32.infinity()) {
    const std::uint64_t nothing = element.has_nan() ? element.quiet_nan() : 0;
    for (std::size_t i = 0; i < count; ++i) elements[i] = static_cast<std::uint8_t>(nothing);
    return {kE8M0Nan, flags};
  }
  const std::uint8_t scale =
      largest == 0 ? 0 : block_scale(element, unpack(kBinary32, largest), options.rule);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = detail::binary32_bits(values[i]);
    const Unpacked v = unpack(kBinary32, detail::operand(kBinary32, bits, options.modes));
    const Rounded p =
        round_pack(element, v.negative, v.significand, v.exponent - e8m0_exponent(scale),
                   detail::element_modes(options, i));
    elements[i] = static_cast<std::uint8_t>(p.bits);
    flags |= p.flags;
  }
  return {scale, flags};
}

/// scale * element rounded once to binary32 (an encoding). Exact unless it overflows, which never
/// happens with the rule floor; the other rules may round a value next to 2^128 up to it. NaN for
/// the scale NaN; infinities and NaNs of E5M2 and E4M3 are converted as by convert().
HALFSCOPE_HD constexpr Rounded dequantise_element(Format element, std::uint8_t scale,
                                                  std::uint8_t bits, const Modes& modes = {}) {
  if (scale == kE8M0Nan) return convert(kBinary32, kFloat8E4M3, kFloat8E4M3.quiet_nan(), modes);
  const Unpacked p = unpack(element, detail::operand(element, bits, modes));
  if (p.kind != Kind::finite) return convert(kBinary32, element, bits, modes);
  return round_pack(kBinary32, p.negative, p.significand, p.exponent + e8m0_exponent(scale), modes);
}

/// Number of blocks for n values; the last block may be short.
HALFSCOPE_HD constexpr std::size_t block_count(std::size_t n) {
  return (n + kMxBlockSize - 1) / kMxBlockSize;
}

namespace detail {

inline void check_blocks(Format element, std::size_t values, std::size_t elements,
                         std::size_t scales) {
  if (element.width > 8) {
    throw std::invalid_argument("MX blocks: an element has 8 bits or fewer, this format " +
                                std::to_string(element.width));
  }
  if (values != elements || scales != block_count(values)) {
    throw std::invalid_argument("MX blocks: " + std::to_string(values) + " values need as many " +
                                "elements and " + std::to_string(block_count(values)) +
                                " scales, not " + std::to_string(elements) + " and " +
                                std::to_string(scales));
  }
}

constexpr std::size_t length_of_block(std::size_t n, std::size_t start) {
  return n - start < kMxBlockSize ? n - start : kMxBlockSize;
}

}  // namespace detail

/// Quantises values block by block. `elements` has the size of `values`, `scales` the size
/// block_count(values.size()). Returns the union of all flags. Throws std::invalid_argument if a
/// size does not fit or the format is wider than 8 bits.
inline Flags quantise_blocks(Format element, std::span<const float> values,
                             std::span<std::uint8_t> elements, std::span<std::uint8_t> scales,
                             const BlockOptions& options = {}) {
  detail::check_blocks(element, values.size(), elements.size(), scales.size());
  Flags flags;
  BlockOptions here = options;
  for (std::size_t i = 0; i < values.size(); i += kMxBlockSize) {
    here.first_index = options.first_index + i;
    const BlockScale block =
        quantise_block(element, values.data() + i, detail::length_of_block(values.size(), i),
                       elements.data() + i, here);
    scales[i / kMxBlockSize] = block.scale;
    flags |= block.flags;
  }
  return flags;
}

/// Converts elements and their scales back to binary32. Throws as quantise_blocks() does.
inline Flags dequantise_blocks(Format element, std::span<const std::uint8_t> elements,
                               std::span<const std::uint8_t> scales, std::span<float> values,
                               const Modes& modes = {}) {
  detail::check_blocks(element, values.size(), elements.size(), scales.size());
  Flags flags;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Rounded v = dequantise_element(element, scales[i / kMxBlockSize], elements[i], modes);
    values[i] = detail::bit_cast<float>(static_cast<std::uint32_t>(v.bits));
    flags |= v.flags;
  }
  return flags;
}

/// Quantises and dequantises in place: each value becomes the nearest that its block can represent.
/// Returns the union of the flags of both conversions.
inline Flags quantise_blocks(Format element, std::span<float> values,
                             const BlockOptions& options = {}) {
  detail::check_blocks(element, values.size(), values.size(), block_count(values.size()));
  const Modes back = {.rounding = options.modes.rounding,
                      .nan = options.modes.nan,
                      .saturate = options.modes.saturate};
  Flags flags;
  BlockOptions here = options;
  for (std::size_t i = 0; i < values.size(); i += kMxBlockSize) {
    std::uint8_t elements[kMxBlockSize] = {};
    const std::span<float> block = values.subspan(i, detail::length_of_block(values.size(), i));
    here.first_index = options.first_index + i;
    const BlockScale scaled = quantise_block(element, block.data(), block.size(), elements, here);
    const std::span<const std::uint8_t> used(elements, block.size());
    flags |=
        scaled.flags | dequantise_blocks(element, used, std::span(&scaled.scale, 1), block, back);
  }
  return flags;
}

}  // namespace halfscope
