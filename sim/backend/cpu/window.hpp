// SPDX-License-Identifier: Apache-2.0
// A convolution as a product of matrices: each window of an image is one row of a matrix.
#pragma once

#include <cstdint>

namespace halfscope::sim::backend::cpu {

/// Windows of kernel_h x kernel_w pixels of (height, width, channels) images, one for each pixel of
/// a rows x columns grid. The first window is at (top, left), neighbours are `step` pixels apart.
/// Pixels outside the image are zero.
struct Window {
  std::int64_t height, width, channels;
  std::int64_t rows, columns;
  std::int64_t step, top, left;
  std::int64_t kernel_h, kernel_w;

  std::int64_t depth() const { return kernel_h * kernel_w * channels; }
  std::int64_t grid() const { return rows * columns; }
  /// Returns true if the windows are the image's pixels in order.
  bool plain() const {
    return kernel_h == 1 && kernel_w == 1 && step == 1 && top == 0 && left == 0 && rows == height &&
           columns == width;
  }
};

/// Copies `count` windows, from number `first`, to `to`: (count, depth). Windows are numbered in
/// the order of (image, row, column).
void gather(const Window& window, const float* images, std::int64_t first, std::int64_t count,
            float* to);

/// Returns how many windows to gather at once, a multiple of 32 that depends only on `depth`.
std::int64_t windows_at_a_time(std::int64_t depth);

/// Returns uninitialised memory of the calling thread. It is valid until the thread's next call
/// with the same `use` (0 to 2).
float* scratch(int use, std::int64_t count);

}  // namespace halfscope::sim::backend::cpu
