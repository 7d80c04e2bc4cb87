// SPDX-License-Identifier: Apache-2.0
// A convolution as a product of matrices: the windows of an image as rows.
#pragma once

#include <cstdint>

namespace halfscope::sim::backend::cpu {

/// Windows of kernel_h x kernel_w pixels of (height, width, channels) images, one for each pixel of
/// a rows x columns grid; `step` apart, the first at (top, left). What lies outside is zero.
struct Window {
  std::int64_t height, width, channels;
  std::int64_t rows, columns;
  std::int64_t step, top, left;
  std::int64_t kernel_h, kernel_w;

  std::int64_t depth() const { return kernel_h * kernel_w * channels; }
  std::int64_t grid() const { return rows * columns; }
  /// Windows are the pixels themselves, in order.
  bool plain() const {
    return kernel_h == 1 && kernel_w == 1 && step == 1 && top == 0 && left == 0 && rows == height &&
           columns == width;
  }
};

/// Windows first to first + count, numbered (image, row, column), to `to`: (count, depth).
void gather(const Window& window, const float* images, std::int64_t first, std::int64_t count,
            float* to);

/// How many windows are gathered at a time, a multiple of 32; by the shape alone.
std::int64_t windows_at_a_time(std::int64_t depth);

/// Uninitialised memory of the calling thread that it keeps; one for each `use`.
float* scratch(int use, std::int64_t count);

}  // namespace halfscope::sim::backend::cpu
