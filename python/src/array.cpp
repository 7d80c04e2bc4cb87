// SPDX-License-Identifier: Apache-2.0
#include "array.hpp"

#include <nanobind/stl/string.h>

#include <string>

#include "bindings.hpp"

namespace nb = nanobind;

namespace halfscope::python {
namespace {

constexpr const char* kWantedDtypes = "expected float16, bfloat16, float32 or float64";

std::string dtype_name(nb::dlpack::dtype dtype) {
  const auto code = static_cast<nb::dlpack::dtype_code>(dtype.code);
  const char* kind = code == nb::dlpack::dtype_code::Int       ? "int"
                     : code == nb::dlpack::dtype_code::UInt    ? "uint"
                     : code == nb::dlpack::dtype_code::Float   ? "float"
                     : code == nb::dlpack::dtype_code::Bfloat  ? "bfloat"
                     : code == nb::dlpack::dtype_code::Complex ? "complex"
                     : code == nb::dlpack::dtype_code::Bool    ? "bool"
                                                               : "type";
  return kind + (code == nb::dlpack::dtype_code::Bool ? "" : std::to_string(dtype.bits));
}

Dtype float_dtype(nb::dlpack::dtype dtype) {
  const auto code = static_cast<nb::dlpack::dtype_code>(dtype.code);
  if (dtype.lanes == 1 && code == nb::dlpack::dtype_code::Bfloat && dtype.bits == 16) {
    return Dtype::bf16;
  }
  if (dtype.lanes == 1 && code == nb::dlpack::dtype_code::Float) {
    if (dtype.bits == 16) return Dtype::f16;
    if (dtype.bits == 32) return Dtype::f32;
    if (dtype.bits == 64) return Dtype::f64;
  }
  throw nb::type_error(("array has dtype " + dtype_name(dtype) + ", " + kWantedDtypes +
                        "; nothing is converted silently: convert it yourself if you mean to")
                           .c_str());
}

/// Returns the type that the caller states for an array of bits.
Dtype stated_dtype(nb::dlpack::dtype stored, const std::string& name) {
  const Dtype dtype = dtype_called(name);
  const int width = format_of(dtype).width;
  const auto code = static_cast<nb::dlpack::dtype_code>(stored.code);
  if (code != nb::dlpack::dtype_code::UInt || stored.bits != width || stored.lanes != 1) {
    throw nb::type_error(("array has dtype " + dtype_name(stored) + ", expected the bits of " +
                          name + " as uint" + std::to_string(width))
                             .c_str());
  }
  return dtype;
}

bool is_contiguous(const nb::ndarray<nb::ro>& array) {
  std::int64_t stride = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != stride) return array.size() <= 1;
    stride *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

}  // namespace

Array array_of(nb::handle object, const std::optional<std::string>& dtype) {
  Array array;
  if (!nb::try_cast(object, array.owner, /*convert=*/false)) {
    throw nb::type_error(
        ("got an object of type " + nb::cast<std::string>(nb::inst_name(object)) +
         " that gives no numbers to look at, expected a NumPy array of native byte "
         "order or a CPU tensor")
            .c_str());
  }
  if (array.owner.device_type() != nb::device::cpu::value) {
    throw nb::value_error("array is not in CPU memory, expected one that is: pass tensor.cpu()");
  }
  const Dtype type =
      dtype ? stated_dtype(array.owner.dtype(), *dtype) : float_dtype(array.owner.dtype());
  if (!is_contiguous(array.owner)) {
    throw nb::value_error(
        "array is not contiguous, expected C order without gaps: pass "
        "numpy.ascontiguousarray(array) "
        "or tensor.contiguous(), which copy");
  }
  for (std::size_t i = 0; i < array.owner.ndim(); ++i) array.shape.push_back(array.owner.shape(i));
  array.view = {type, static_cast<const std::byte*>(array.owner.data()), array.owner.size()};
  return array;
}

}  // namespace halfscope::python
