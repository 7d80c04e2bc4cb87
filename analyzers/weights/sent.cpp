// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/sent.hpp"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <new>

#include "halfscope/optimizer/changed.hpp"

namespace halfscope::analyzers::weights {
namespace {

constexpr std::uint64_t kMostNarrow = std::uint64_t{1} << 32;  ///< elements with indices of 4 bytes
constexpr std::size_t kFrame = std::size_t{1} << 20;           ///< weights

/// Calls visit(i) for each set bit, ascending.
template <class Visit>
void for_each_bit(std::span<const std::uint8_t> bits, const Visit& visit) {
  for (std::size_t byte = 0; byte < bits.size(); byte += 8) {
    std::uint64_t rest = 0;
    std::memcpy(&rest, bits.data() + byte, std::min(sizeof rest, bits.size() - byte));
    for (; rest != 0; rest &= rest - 1) {
      visit(byte * 8 + static_cast<std::size_t>(std::countr_zero(rest)));
    }
  }
}

/// Appends the lowest bytes of a value.
void append(std::vector<std::byte>& to, const void* value, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(value);
  to.insert(to.end(), first, first + bytes);
}

/// Returns the size of a zstd frame.
std::uint64_t compressed(const std::vector<std::byte>& bytes) {
  std::vector<std::byte> out(ZSTD_compressBound(bytes.size()));
  const std::size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3);
  if (ZSTD_isError(size) != 0) throw std::bad_alloc();  // the only error with so much space
  return bytes.empty() ? 0 : size;
}

}  // namespace

log::RawTensor set_tensor(const std::string& name, std::span<const std::uint8_t> bits,
                          std::uint64_t count) {
  std::vector<std::byte> bytes;
  const bool narrow = bits.size() <= kMostNarrow / 8 && count * 4 < bits.size();
  if (narrow) {
    bytes.reserve(static_cast<std::size_t>(count) * 4);
    for_each_bit(bits, [&](std::uint64_t i) { append(bytes, &i, 4); });
  } else {
    append(bytes, bits.data(), bits.size());
  }
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const log::FileBytes held{{owner, owner->data()}, *owner};
  return {name, narrow ? "U32" : "U8", {narrow ? count : bits.size()}, held};
}

void add_sent(const TensorView& a, const TensorView& b, Dtype copies, SentBytes& to) {
  using Clock = std::chrono::steady_clock;
  const auto width = static_cast<std::size_t>(format_of(copies).width / 8);
  const std::size_t index_width = a.count > kMostNarrow ? 8 : 4;
  for (std::size_t first = 0; first < a.count; first += kFrame) {
    const auto start = Clock::now();
    const std::size_t n = std::min(kFrame, a.count - first);
    std::vector<std::uint8_t> bits((n + 7) / 8);
    std::vector<std::byte> xored(n * width), after(n * width), indices, values;
    optimizer::changed(a, b, copies, first, n, bits);
    optimizer::copies_of(a, copies, first, n, xored.data());
    optimizer::copies_of(b, copies, first, n, after.data());
    for_each_bit(bits, [&](std::size_t i) {
      const std::uint64_t index = first + i;
      append(indices, &index, index_width);
      append(values, after.data() + i * width, width);
    });
    std::ranges::transform(xored, after, xored.begin(), std::bit_xor<>());
    const auto built = Clock::now();
    to.copies += xored.size();
    to.sparse += indices.size() + values.size();
    to.sparse_zstd += compressed(indices) + compressed(values);
    to.xored_zstd += compressed(xored);
    to.seconds += std::chrono::duration<double>(built - start).count();
    to.zstd_seconds += std::chrono::duration<double>(Clock::now() - built).count();
  }
}

}  // namespace halfscope::analyzers::weights
