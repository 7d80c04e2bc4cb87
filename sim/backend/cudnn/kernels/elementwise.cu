// SPDX-License-Identifier: Apache-2.0
// Elementwise operations. These kernels are limited by memory bandwidth, so a thread reads packs of
// adjacent elements (16 bytes if all tensors are 16-bit).
#include "sim/backend/cudnn/kernels/element.hpp"
#include "sim/backend/cudnn/kernels/kernels.hpp"

namespace halfscope::sim::backend::cudnn::kernels {
namespace {

using cuda::launch;

constexpr int kPack = 8;

template <class T>
struct alignas(16) Pack {  // vector loads have at most 16 bytes
  T values[kPack];
  __device__ T& operator[](int i) { return values[i]; }
  __device__ const T& operator[](int i) const { return values[i]; }
};

/// Writes op(a[i], b[i]) to out[i]. If b is null, its elements are 0.
template <class A, class B, class Out, class Op>
__global__ void map_kernel(const A* a, const B* b, Out* out, std::int64_t count, Op op) {
  const std::int64_t packs = count / kPack;
  for (std::int64_t i = first_element(); i < packs; i += element_stride()) {
    const auto left = reinterpret_cast<const Pack<A>*>(a)[i];
    Pack<B> right{};
    if (b != nullptr) right = reinterpret_cast<const Pack<B>*>(b)[i];
    Pack<Out> made{};
    for (int k = 0; k < kPack; ++k) {
      made[k] = narrow<Out>(op(wide(left[k]), b != nullptr ? wide(right[k]) : 0.0F));
    }
    reinterpret_cast<Pack<Out>*>(out)[i] = made;
  }
  const std::int64_t rest = packs * kPack + first_element();  // the last elements, fewer than a
                                                              // pack
  if (rest < count) {
    out[rest] = narrow<Out>(op(wide(a[rest]), b != nullptr ? wide(b[rest]) : 0.0F));
  }
}

/// Starts the kernel for tensors that all have one dtype.
template <class Op>
void map(const char* name, Elements a, Elements b, Elements out, std::int64_t count, const Op& op,
         cudaStream_t stream) {
  if (a.dtype != out.dtype || (b.data != nullptr && b.dtype != a.dtype)) {
    throw std::invalid_argument(std::string("cudnn backend: ") + name +
                                ": tensors of different dtypes");
  }
  with_type(a.dtype, [&]<class T>(T) {
    launch(name, map_kernel<T, T, T, Op>, {.blocks = blocks_of(count, kThreads * kPack)}, stream,
           static_cast<const T*>(a.data), static_cast<const T*>(b.data), static_cast<T*>(out.data),
           count, op);
  });
}

struct Same {
  __device__ float operator()(float a, float) const { return a; }
};
struct Relu {
  __device__ float operator()(float x, float) const { return x <= 0 ? 0.0F : x; }  // keeps NaN
};
struct ReluGradient {
  __device__ float operator()(float y, float dy) const { return y <= 0 ? 0.0F : dy; }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Product {
  float factor;
  __device__ float operator()(float x, float) const { return x * factor; }
};

template <class T>
__global__ void fill_kernel(T* to, std::int64_t count, T value) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) to[i] = value;
}

template <class T>
__global__ void fill_rows_kernel(const T* row, T* to, std::int64_t count, std::int64_t width) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) to[i] = row[i % width];
}

template <class From, class To>
__global__ void copy_pieces_kernel(const From* from, std::int64_t from_stride, To* to,
                                   std::int64_t to_stride, std::int64_t count, std::int64_t width) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const std::int64_t row = i / width, column = i % width;
    to[row * to_stride + column] = narrow<To>(wide(from[row * from_stride + column]));
  }
}

}  // namespace

void copy(Elements from, Elements to, std::int64_t count, cudaStream_t stream) {
  with_type(from.dtype, [&]<class From>(From) {
    with_type(to.dtype, [&]<class To>(To) {
      launch("copy", map_kernel<From, From, To, Same>,
             {.blocks = blocks_of(count, kThreads * kPack)}, stream,
             static_cast<const From*>(from.data), static_cast<const From*>(nullptr),
             static_cast<To*>(to.data), count, Same{});
    });
  });
}

void fill(Elements to, std::int64_t count, float value, cudaStream_t stream) {
  with_type(to.dtype, [&]<class T>(T) {
    launch("fill", fill_kernel<T>, {.blocks = blocks_of(count)}, stream, static_cast<T*>(to.data),
           count, narrow<T>(value));
  });
}

void fill_rows(Elements row, Elements to, std::int64_t rows, std::int64_t width,
               cudaStream_t stream) {
  if (row.dtype != to.dtype) {
    throw std::invalid_argument("cudnn backend: a bias of another dtype than its layer");
  }
  with_type(to.dtype, [&]<class T>(T) {
    launch("fill_rows", fill_rows_kernel<T>, {.blocks = blocks_of(rows * width)}, stream,
           static_cast<const T*>(row.data), static_cast<T*>(to.data), rows * width, width);
  });
}

void relu_forward(Elements x, Elements y, std::int64_t count, cudaStream_t stream) {
  map("relu", x, {}, y, count, Relu{}, stream);
}

void relu_backward(Elements y, Elements dy, Elements dx, std::int64_t count, cudaStream_t stream) {
  map("relu backward", y, dy, dx, count, ReluGradient{}, stream);
}

void add(Elements a, Elements b, Elements y, std::int64_t count, cudaStream_t stream) {
  map("add", a, b, y, count, Sum{}, stream);
}

void multiply(Elements x, float factor, Elements y, std::int64_t count, cudaStream_t stream) {
  map("multiply", x, {}, y, count, Product{factor}, stream);
}

void copy_pieces(Elements from, std::int64_t from_stride, Elements to, std::int64_t to_stride,
                 std::int64_t rows, std::int64_t width, cudaStream_t stream) {
  with_type(from.dtype, [&]<class From>(From) {
    with_type(to.dtype, [&]<class To>(To) {
      launch("copy_pieces", copy_pieces_kernel<From, To>, {.blocks = blocks_of(rows * width)},
             stream, static_cast<const From*>(from.data), from_stride, static_cast<To*>(to.data),
             to_stride, rows * width, width);
    });
  });
}

}  // namespace halfscope::sim::backend::cudnn::kernels
