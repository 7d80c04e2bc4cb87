// SPDX-License-Identifier: Apache-2.0
// Reads single elements of tensors.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::compare {

/// Returns the value of every encoding of an 8- or 16-bit dtype, from an array that is built once.
inline const std::vector<double>& values_of(Dtype dtype) {
  static std::array<std::once_flag, kAllDtypes.size()> made;
  static std::array<std::vector<double>, kAllDtypes.size()> values;
  const auto at = static_cast<std::size_t>(dtype);
  std::call_once(made[at], [&] {
    const Format format = format_of(dtype);
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << format.width; ++bits) {
      values[at].push_back(to_double(format, bits));
    }
  });
  return values[at];
}

/// Reads elements of a tensor as recorded, exactly, in binary64.
class Reader {
 public:
  explicit Reader(const TensorView& view)
      : view_(view),
        width_(format_of(view.dtype).width),
        narrow_(width_ <= 16 ? values_of(view.dtype).data() : nullptr) {}

  double operator[](std::size_t i) const {
    switch (width_) {
      case 8: return narrow_[load<std::uint8_t>(i)];
      case 16: return narrow_[load<std::uint16_t>(i)];
      case 32: return double{std::bit_cast<float>(load<std::uint32_t>(i))};
      default: return std::bit_cast<double>(load<std::uint64_t>(i));
    }
  }

 private:
  template <typename Bits>
  Bits load(std::size_t i) const {
    Bits bits;
    std::memcpy(&bits, view_.data + i * sizeof(Bits), sizeof(Bits));
    return bits;
  }

  TensorView view_;
  int width_;
  const double* narrow_;  ///< values by encoding; null for wider dtypes
};

}  // namespace halfscope::analyzers::compare
