// SPDX-License-Identifier: Apache-2.0
// Sums over rows, in an order that depends on the shape alone. One thread per column sums each part
// of the rows; then the parts are added in order.
#include <algorithm>

#include "sim/backend/cudnn/kernels/element.hpp"
#include "sim/backend/cudnn/kernels/kernels.hpp"

namespace halfscope::sim::backend::cudnn::kernels {
namespace {

using cuda::launch;

constexpr std::int64_t kLeastRows = 64, kMostParts = 512;

template <class T>
__global__ void part_kernel(const T* x, std::int64_t rows, std::int64_t width, std::int64_t parts,
                            float* partial) {
  for (std::int64_t i = first_element(); i < parts * width; i += element_stride()) {
    const std::int64_t part = i / width, column = i % width;
    const std::int64_t end = (part + 1) * rows / parts;
    float sum = 0;
    for (std::int64_t row = part * rows / parts; row < end; ++row) {
      sum += wide(x[row * width + column]);
    }
    partial[i] = sum;
  }
}

template <class T>
__global__ void total_kernel(const float* partial, std::int64_t parts, std::int64_t width, T* sums,
                             bool add) {
  for (std::int64_t column = first_element(); column < width; column += element_stride()) {
    float sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += partial[part * width + column];
    sums[column] = narrow<T>(add ? wide(sums[column]) + sum : sum);
  }
}

}  // namespace

std::int64_t partial_sums(std::int64_t rows) {
  return std::clamp(blocks_for(rows, kLeastRows), std::int64_t{1}, kMostParts);
}

void sum_rows(Elements x, std::int64_t rows, std::int64_t width, float* partial, Elements sums,
              bool add, cudaStream_t stream) {
  const std::int64_t parts = partial_sums(rows);
  with_type(x.dtype, [&]<class T>(T) {
    launch("sum_rows", part_kernel<T>, {.blocks = blocks_of(parts * width)}, stream,
           static_cast<const T*>(x.data), rows, width, parts, partial);
  });
  with_type(sums.dtype, [&]<class T>(T) {
    launch("sum_rows", total_kernel<T>, {.blocks = blocks_of(width)}, stream, partial, parts, width,
           static_cast<T*>(sums.data), add);
  });
}

}  // namespace halfscope::sim::backend::cudnn::kernels
