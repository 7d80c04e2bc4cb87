// SPDX-License-Identifier: Apache-2.0
// Products of matrices, summed as a Tensor Core does, for halfscope.torch.emulate. Private: its
// Python side is halfscope/torch/emulate_products.py.
#include "halfscope/tensor_core/gemm.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

using tensor_core::Accumulator;
using tensor_core::Architecture;
using tensor_core::MatrixAt;

/// A batch of matrices, with any strides.
template <class T>
using Matrices = nb::ndarray<T, nb::ndim<3>, nb::device::cpu>;

/// Returns {architecture: 16-bit formats that its Tensor Cores multiply with sums in binary32}.
nb::dict formats_of_architectures() {
  nb::dict all;
  for (const Architecture& row : tensor_core::kArchitectures) {
    nb::list formats;
    for (const char* const name : {"binary16", "bfloat16"}) {
      const Format f = format_named(name).format;
      if (unit_of(row, f, f, Accumulator::binary32)) formats.append(name);
    }
    all[nb::str(row.name.data(), row.name.size())] = formats;
  }
  return all;
}

tensor_core::Gemm how(const std::string& architecture, const std::string& format) {
  const Architecture* const known = tensor_core::find_architecture(architecture);
  const Format f = format_named(format).format;
  const auto unit = known == nullptr ? std::nullopt : unit_of(*known, f, f, Accumulator::binary32);
  if (!unit) {
    throw std::invalid_argument(architecture + " has no Tensor Core for " + format +
                                "; tensor_core_formats() has what there is");
  }
  return {.unit = *unit, .a = f, .b = f};
}

template <class T>
MatrixAt<T> matrix(const Matrices<T>& all, std::size_t i) {
  return {all.data() + static_cast<std::int64_t>(i) * all.stride(0), all.stride(1), all.stride(2)};
}

/// Computes d += a b for each matrix of a batch: a (batch, m, k), b (batch, k, n), d (batch, m, n).
/// a and b hold values of the format.
void add_products(const std::string& architecture, const std::string& format,
                  const Matrices<const float>& a, const Matrices<const float>& b,
                  const Matrices<float>& d) {
  const std::size_t batch = d.shape(0), m = d.shape(1), n = d.shape(2), k = a.shape(2);
  if (a.shape(0) != batch || b.shape(0) != batch || a.shape(1) != m || b.shape(1) != k ||
      b.shape(2) != n) {
    throw std::invalid_argument(
        "add_products: expected (batch, m, k), (batch, k, n), (batch, m, n)");
  }
  const tensor_core::Gemm gemm = how(architecture, format);
  nb::gil_scoped_release release;
  for (std::size_t i = 0; i < batch; ++i) {
    tensor_core::gemm(
        gemm,
        {static_cast<std::int64_t>(m), static_cast<std::int64_t>(n), static_cast<std::int64_t>(k)},
        matrix(a, i), matrix(b, i), matrix(d, i));
  }
}

}  // namespace

void bind_tensor_core(nb::module_& module) {
  module.def("tensor_core_formats", &formats_of_architectures);
  module.def("add_products", &add_products, "architecture"_a, "format"_a, "a"_a.noconvert(),
             "b"_a.noconvert(), "d"_a.noconvert());
}

}  // namespace halfscope::python
