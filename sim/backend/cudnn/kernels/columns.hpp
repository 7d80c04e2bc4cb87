// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a matrix, in order. Additions of one column depend on each other, loads do
// not: a block of threads loads the next rows, 16 bytes a load, while its first warp adds the rows
// before them from shared memory. Between them is a barrier, so the compiler cannot move a load to
// the place where its value is used.
#pragma once

#include "sim/backend/cudnn/kernels/element.hpp"

namespace halfscope::sim::backend::cudnn::kernels {

inline constexpr int kLanes = 32;  // a warp, and the columns that it adds

/// V adjacent channels of one row. Their memory is aligned if V divides the number of channels.
template <class T, int V>
struct alignas(sizeof(T) * V) Channels {
  T values[V];
  __device__ float operator[](int i) const { return wide(values[i]); }
};
template <class T, int V>
__device__ const Channels<T, V>& channels_at(const T* from) {
  return *reinterpret_cast<const Channels<T, V>*>(from);
}

/// Loads of one thread that are under way at a time: 128 bytes, of scalars fewer.
template <int V>
inline constexpr int kLoads = V == 1 ? 16 : 8;
/// At most 32 columns of a matrix, which a block of kWarps warps moves to shared memory, stage by
/// stage.
template <class T, int V, int kWarps>
class Columns {
 public:
  static constexpr int kRows = kWarps * V * kLoads<V>;  ///< loaded at a time
  static constexpr int kTile = kRows * kLanes;

  /// `from`: the first of `width` columns and of `rows` rows, which are `stride` elements apart.
  /// `tile`: shared memory of kTile elements.
  __device__ Columns(const T* from, std::int64_t rows, std::int64_t stride, std::int64_t width,
                     T* tile)
      : tile_(tile), step_(kWarps * V * stride) {
    const int place = static_cast<int>(threadIdx.x) * V, column = place % kLanes;
    next_ = from + place / kLanes * stride + column;
    if (column < width) rows_ = static_cast<int>(rows) - place / kLanes;
  }

  /// Loads the next rows into registers; put() moves them to shared memory.
  __device__ void load() {
#pragma unroll
    for (int k = 0; k < kLoads<V>; ++k) {
      if (k * kWarps * V < rows_) loaded_[k] = channels_at<T, V>(next_ + k * step_);
    }
    next_ += kLoads<V> * step_;
    rows_ -= kRows;
  }
  __device__ void put() const {
#pragma unroll
    for (int k = 0; k < kLoads<V>; ++k) {
      const int place = (k * kWarps * kLanes + static_cast<int>(threadIdx.x)) * V;
      *reinterpret_cast<Channels<T, V>*>(tile_ + place) = loaded_[k];
    }
  }
  /// Returns this lane's value of a row in shared memory.
  __device__ float at(int row) const { return wide(tile_[row * kLanes + threadIdx.x % kLanes]); }

 private:
  T* tile_;
  const T* next_;
  std::int64_t step_;
  int rows_ = 0;  // that are left, from next_ on
  Channels<T, V> loaded_[kLoads<V>] = {};
};

/// Calls use(values of the columns...) in the block's first warp for each row, in order. All
/// threads of the block call this function.
template <class Use, class First, class... More>
__device__ void each_row(std::int64_t rows, const Use& use, First& first, More&... more) {
  first.load(), (more.load(), ...);
  for (int left = static_cast<int>(rows); left > 0; left -= First::kRows) {
    first.put(), (more.put(), ...);
    __syncthreads();
    first.load(), (more.load(), ...);
    const int count = min(left, First::kRows);
    if (threadIdx.x < kLanes) {
#pragma unroll 16
      for (int row = 0; row < count; ++row) use(first.at(row), more.at(row)...);
    }
    __syncthreads();
  }
}

}  // namespace halfscope::sim::backend::cudnn::kernels
