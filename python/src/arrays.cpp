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

#include "array_memory.hpp"
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
