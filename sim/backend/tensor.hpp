// SPDX-License-Identifier: Apache-2.0
// A tensor: a shape, an element type, and memory that belongs to a backend.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::sim::backend {

/// Extents, outermost first. Images are NHWC, convolution weights KRSC, dense weights (out, in).
using Shape = std::vector<std::int64_t>;

inline std::int64_t elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// Memory of one tensor; each backend defines its own type.
struct Storage {
  virtual ~Storage() = default;
};

/// A handle: copies share the memory. The values are always values of `dtype`, in whatever type the
/// backend stores them.
struct Tensor {
  Shape shape;
  Dtype dtype = Dtype::f32;
  std::shared_ptr<Storage> storage;

  std::int64_t size() const { return elements(shape); }
  explicit operator bool() const { return storage != nullptr; }
};

}  // namespace halfscope::sim::backend
