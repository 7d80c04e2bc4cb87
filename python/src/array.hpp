// SPDX-License-Identifier: Apache-2.0
// Arrays of other Python packages as tensors: no copy, no conversion.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <string_view>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::python {

/// An array of NumPy, PyTorch, or any other package with DLPack or the buffer protocol. Keeps the
/// memory of `view` alive.
struct Array {
  nanobind::ndarray<nanobind::ro> owner;
  std::vector<std::uint64_t> shape;
  TensorView view;
};

/// Takes an array in CPU memory, contiguous in C order, of a floating-point type that has a table.
/// dtype: the name of the elements' true type for arrays of bits ("BF16" for uint16), else empty.
/// Throws TypeError or ValueError, with what `object` is, what is expected and a way out.
Array array_of(nanobind::handle object, const std::optional<std::string>& dtype);

}  // namespace halfscope::python
