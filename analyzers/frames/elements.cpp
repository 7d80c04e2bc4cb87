// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/elements.hpp"

#include <cstdint>
#include <cstring>
#include <span>

#include "halfscope/array/array.hpp"

namespace halfscope::analyzers::frames {
namespace {

template <class T>
std::vector<T> copy(const TensorView& view, std::size_t first, std::size_t n) {
  std::vector<T> values(n);
  if (n != 0) std::memcpy(values.data(), view.data + first * sizeof(T), n * sizeof(T));
  return values;
}

template <class Bits>
std::vector<double> widen(const TensorView& view, std::size_t first, std::size_t n) {
  const std::vector<Bits> bits = copy<Bits>(view, first, n);
  std::vector<float> values(n);
  convert(format_of(view.dtype), std::span<const Bits>(bits), values, {.threads = 1});
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<double> elements(const TensorView& view, std::size_t first, std::size_t n) {
  switch (format_of(view.dtype).width) {
    case 8: return widen<std::uint8_t>(view, first, n);
    case 16: return widen<std::uint16_t>(view, first, n);
    case 32: {
      const std::vector<float> values = copy<float>(view, first, n);
      return {values.begin(), values.end()};
    }
    default: return copy<double>(view, first, n);
  }
}

bool same_bytes(const TensorView& view, std::size_t first, std::size_t other, std::size_t n) {
  const auto width = static_cast<std::size_t>(format_of(view.dtype).width / 8);
  return std::memcmp(view.data + first * width, view.data + other * width, n * width) == 0;
}

}  // namespace halfscope::analyzers::frames
