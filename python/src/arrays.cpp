// SPDX-License-Identifier: Apache-2.0
// Rounding and arithmetic on uncopied arrays. Private: its Python side is halfscope/arrays.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/number/mode_names.hpp"
#include "halfscope/table/boundary.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

template <class T>
using Words = std::vector<std::pair<std::string_view, T>>;

Words<Rounding> roundings() {
  Words<Rounding> all(kRoundingNames.begin(), kRoundingNames.end());
  all.emplace_back("stochastic", Rounding::stochastic);
  return all;
}

template <class T>
T called(const Words<T>& words, const char* what, const std::string& name) {
  std::string all;
  for (const auto& [word, value] : words) {
    if (word == name) return value;
    all += (all.empty() ? "'" : ", '") + std::string(word) + "'";
  }
  throw nb::value_error((what + (" is '" + name + "', expected one of ") + all).c_str());
}

ArrayOptions options_of(const std::string& rounding, const std::string& subnormals, bool saturate,
                        const std::string& nan, bool denormals_are_zero, std::uint64_t seed,
                        int threads) {
  Words<Subnormals> rules;
  for (const NamedSubnormals& row : kSubnormals) rules.emplace_back(row.name, row.rule);
  Modes modes = with_subnormals({}, called(rules, "subnormals", subnormals));
  modes.rounding = called(roundings(), "rounding", rounding);
  modes.nan = called(Words<NanPolicy>(kNanNames.begin(), kNanNames.end()), "nan", nan);
  modes.saturate = saturate;
  modes.denormals_are_zero = denormals_are_zero;
  return {.modes = modes, .seed = seed, .threads = threads};
}

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

[[noreturn]] void refuse(const std::string& why) { throw nb::value_error(why.c_str()); }

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

/// Throws ValueError if the output overlaps a part of an input. It may be the whole input.
void require_apart(const Input& in, const Output& out) {
  const std::byte* const end = in.begin + in.bytes();
  const bool apart = out.begin >= end || out.begin + out.bytes() <= in.begin;
  const bool same = out.begin == in.begin && out.bytes() == in.bytes();
  if (!apart && !same) refuse("out overlaps a part of an input, expected the input itself or none");
}

nb::list names_of(const Flags& flags) {
  nb::list names;
  if (flags.invalid) names.append("invalid");
  if (flags.divide_by_zero) names.append("divide_by_zero");
  if (flags.overflow) names.append("overflow");
  if (flags.underflow) names.append("underflow");
  if (flags.inexact) names.append("inexact");
  return names;
}

Flags converted(Format format, const Input& in, const Output& out, const ArrayOptions& options) {
  if (in.bits == 32 && out.bits == 16) {
    return convert(format, in.span<float>(), out.span<std::uint16_t>(), options);
  }
  if (in.bits == 32 && out.bits == 8) {
    return convert(format, in.span<float>(), out.span<std::uint8_t>(), options);
  }
  if (in.bits == 16 && out.bits == 32) {
    return convert(format, in.span<std::uint16_t>(), out.span<float>(), options);
  }
  if (in.bits == 8 && out.bits == 32) {
    return convert(format, in.span<std::uint8_t>(), out.span<float>(), options);
  }
  refuse("one of both arrays is float32, the other one is not: found " + std::to_string(in.bits) +
         " and " + std::to_string(out.bits) + " bits");
}

nb::list convert_array(const std::string& format, nb::handle values, nb::handle out,
                       const ArrayOptions& options) {
  const Format named = format_named(format).format;
  const Input in = memory_of<false>(values, "the array");
  const Output to = memory_of<true>(out, "out");
  require_apart(in, to);
  Flags flags;
  {
    nb::gil_scoped_release release;
    flags = converted(named, in, to, options);
  }
  return names_of(flags);
}

nb::list quantise_array(const std::string& format, nb::handle values, const ArrayOptions& options) {
  const Format named = format_named(format).format;
  const Output memory = memory_of<true>(values, "the array");
  if (memory.bits != 32)
    refuse("the array is not float32, expected float32: it is rounded in place");
  Flags flags;
  {
    nb::gil_scoped_release release;
    flags = quantise(named, memory.span<float>(), options);
  }
  return names_of(flags);
}

/// Computes add or multiply of two arrays, or fused_multiply_add of three.
nb::list combine_arrays(const std::string& operation, const std::string& format,
                        const std::vector<nb::object>& arrays, nb::handle out,
                        const ArrayOptions& options) {
  const Format named = format_named(format).format;
  constexpr std::array kNames = {"the first array", "the second array", "the third array"};
  const Output to = memory_of<true>(out, "out");
  std::vector<Input> in;
  std::vector<std::span<const std::uint16_t>> of;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    in.push_back(memory_of<false>(arrays[i], kNames.at(i)));
    if (in.back().bits != 16 || to.bits != 16) {
      refuse("found an array whose elements have not 16 bits, expected 16 bits in all");
    }
    require_apart(in.back(), to);
    of.push_back(in.back().span<std::uint16_t>());
  }
  const std::span<std::uint16_t> result = to.span<std::uint16_t>();
  Flags flags;
  {
    nb::gil_scoped_release release;
    flags = operation == "add" ? add(named, of.at(0), of.at(1), result, options)
            : operation == "multiply"
                ? multiply(named, of.at(0), of.at(1), result, options)
                : fused_multiply_add(named, of.at(0), of.at(1), of.at(2), result, options);
  }
  return names_of(flags);
}

}  // namespace

void bind_arrays(nb::module_& module) {
  nb::class_<ArrayOptions>(module, "ArrayOptions")
      .def(
          "__init__",
          [](ArrayOptions* self, const std::string& rounding, const std::string& subnormals,
             bool saturate, const std::string& nan, bool denormals_are_zero, std::uint64_t seed,
             int threads) {
            new (self) ArrayOptions(
                options_of(rounding, subnormals, saturate, nan, denormals_are_zero, seed, threads));
          },
          nb::kw_only(), "rounding"_a, "subnormals"_a, "saturate"_a, "nan"_a,
          "denormals_are_zero"_a, "seed"_a, "threads"_a);
  module.def("convert_array", &convert_array, "format"_a, "values"_a, "out"_a, "options"_a);
  module.def("quantise_array", &quantise_array, "format"_a, "values"_a, "options"_a);
  module.def("combine_arrays", &combine_arrays, "operation"_a, "format"_a, "arrays"_a, "out"_a,
             "options"_a);
}

}  // namespace halfscope::python
