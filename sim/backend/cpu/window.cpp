// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cpu/window.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace halfscope::sim::backend::cpu {
namespace {

/// Copies the window whose first pixel is (y, x).
void gather_one(const Window& w, const float* image, std::int64_t y, std::int64_t x, float* to) {
  const std::int64_t length = w.kernel_w * w.channels;
  const std::int64_t before = std::clamp<std::int64_t>(-x, 0, w.kernel_w);
  const std::int64_t end = std::clamp<std::int64_t>(w.width - x, before, w.kernel_w);
  for (std::int64_t r = 0; r < w.kernel_h; ++r, to += length) {
    if (y + r < 0 || y + r >= w.height) {
      std::fill_n(to, length, 0.0f);
      continue;
    }
    const float* row = image + ((y + r) * w.width + x) * w.channels;
    for (std::int64_t i = 0; i < before * w.channels; ++i) to[i] = 0;
    for (std::int64_t i = before * w.channels; i < end * w.channels; ++i) to[i] = row[i];
    for (std::int64_t i = end * w.channels; i < length; ++i) to[i] = 0;
  }
}

}  // namespace

void gather(const Window& window, const float* images, std::int64_t first, std::int64_t count,
            float* to) {
  const std::int64_t depth = window.depth(), grid = window.grid();
  std::int64_t image = first / grid;
  std::int64_t row = first % grid / window.columns, column = first % window.columns;
  for (std::int64_t i = 0; i < count; ++i, to += depth) {
    gather_one(window, images + image * window.height * window.width * window.channels,
               window.top + row * window.step, window.left + column * window.step, to);
    if (++column < window.columns) continue;
    column = 0;
    if (++row < window.rows) continue;
    row = 0;
    ++image;
  }
}

std::int64_t windows_at_a_time(std::int64_t depth) {
  constexpr std::int64_t kValues = 1 << 16;  // 256 KiB: half of a typical second-level cache
  return std::clamp<std::int64_t>(kValues / std::max<std::int64_t>(depth, 1) / 32 * 32, 32, 2048);
}

float* scratch(int use, std::int64_t count) {
  thread_local std::array<std::vector<float>, 3> memory;
  std::vector<float>& mine = memory[static_cast<std::size_t>(use)];
  if (mine.size() < static_cast<std::size_t>(count)) mine.resize(static_cast<std::size_t>(count));
  return mine.data();
}

}  // namespace halfscope::sim::backend::cpu
