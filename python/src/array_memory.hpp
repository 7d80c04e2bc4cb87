// SPDX-License-Identifier: Apache-2.0
// The memory of arrays that the functions of halfscope/arrays.py read and write.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace halfscope::python {

namespace nb = nanobind;

/// The memory of a Python array, not copied; writable if Out is true.
template <bool Out>
struct ArrayMemory {
  using Array = std::conditional_t<Out, nb::ndarray<>, nb::ndarray<nb::ro>>;
  using Byte = std::conditional_t<Out, std::byte, const std::byte>;
  Array owner;
  Byte* begin = nullptr;
  int bits = 0;  ///< size of an element

  std::size_t bytes() const { return owner.size() * static_cast<std::size_t>(bits / 8); }
  template <class T>
  auto span() const {
    using Element = std::conditional_t<Out, T, const T>;
    return std::span(reinterpret_cast<Element*>(begin), owner.size());
  }
};

[[noreturn]] inline void refuse(const std::string& why) { throw nb::value_error(why.c_str()); }

template <bool Out>
void require_usable(const ArrayMemory<Out>& memory, const char* name) {
  const auto& array = memory.owner;
  if (array.device_type() != nb::device::cpu::value) {
    refuse(std::string(name) + " is not in CPU memory, expected one that is: pass tensor.cpu()");
  }
  std::int64_t stride = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != stride && array.size() > 1) {
      refuse(std::string(name) + " is not contiguous, expected C order without gaps");
    }
    stride *= static_cast<std::int64_t>(array.shape(i));
  }
  if (reinterpret_cast<std::uintptr_t>(memory.begin) % static_cast<std::size_t>(memory.bits / 8)) {
    refuse(std::string(name) + " is not aligned to its elements, expected an array that is");
  }
}

template <bool Out>
ArrayMemory<Out> memory_of(nb::handle object, const char* name) {
  ArrayMemory<Out> memory;
  if (!nb::try_cast(object, memory.owner, /*convert=*/false)) {
    throw nb::type_error((std::string(name) + " is an object of type " +
                          nb::cast<std::string>(nb::inst_name(object)) + ", expected " +
                          (Out ? "an array or CPU tensor that may be written to"
                               : "an array of native byte order or a CPU tensor"))
                             .c_str());
  }
  const nb::dlpack::dtype type = memory.owner.dtype();
  memory.bits = type.bits;
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  const bool is_float = code == nb::dlpack::dtype_code::Float;
  const bool known = type.bits == 32   ? is_float
                     : type.bits == 16 ? is_float || code == nb::dlpack::dtype_code::Bfloat ||
                                             code == nb::dlpack::dtype_code::UInt
                                       : type.bits == 8 && code == nb::dlpack::dtype_code::UInt;
  if (!known || type.lanes != 1) {
    throw nb::type_error((std::string(name) +
                          " has elements that are no float32, 16-bit or 8-bit numbers; nothing is "
                          "converted silently")
                             .c_str());
  }
  memory.begin = static_cast<typename ArrayMemory<Out>::Byte*>(static_cast<void*>(
      const_cast<std::remove_const_t<std::remove_pointer_t<decltype(memory.owner.data())>>*>(
          memory.owner.data())));
  require_usable(memory, name);
  return memory;
}

using Input = ArrayMemory<false>;
using Output = ArrayMemory<true>;

}  // namespace halfscope::python
