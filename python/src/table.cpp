// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/binade_table.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <utility>

#include "array.hpp"
#include "bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

std::optional<double> value_of(const std::optional<Magnitude>& m) {
  if (!m) return std::nullopt;
  return std::ldexp(static_cast<double>(kFractionUnit + m->fraction), m->exponent - 52);
}

/// Returns a count as in the JSON: a number, or [low, high] if only bounds are known.
nb::object count_of(const Interval& count) {
  if (count.exact()) return nb::cast(count.low);
  nb::list bounds;
  bounds.append(count.low);
  bounds.append(count.high);
  return bounds;
}

/// `format`: a name, or a type of NumPy or PyTorch, whose text ends with a name ("torch.float16").
nb::dict classify_by_name(const BinadeTable& table, nb::handle format, double scale) {
  const nb::object name = nb::getattr(format, "__name__", nb::borrow(format));
  const std::string text = nb::str(name).c_str();
  const NamedFormat& named = format_named(text.substr(text.rfind('.') + 1));
  const Classes classes = classify(table, boundaries(named.format, scale));
  nb::dict counts;
  counts["flushed_to_zero"] = count_of(classes.flushed_to_zero);
  counts["subnormal"] = count_of(classes.subnormal);
  counts["normal"] = count_of(classes.normal);
  counts["overflow"] = count_of(classes.overflow);
  return counts;
}

nb::list rows_of(const BinadeTable& table) {
  nb::list rows;
  for (const BinadeTable::Row& row : table.rows()) {
    nb::list segments;
    for (const std::uint64_t count : row.segments) segments.append(count);
    rows.append(nb::make_tuple(row.exponent, segments, row.negative));
  }
  return rows;
}

nb::list binades_of(const BinadeTable& table) {
  nb::list binades;
  for (const BinadeTable::Row& row : table.rows()) {
    binades.append(nb::make_tuple(row.exponent, row.count()));
  }
  return binades;
}

std::string repr_of(const BinadeTable& table) {
  return "<BinadeTable: " + std::to_string(table.total()) + " values, " +
         std::to_string(table.finite_nonzero()) + " finite and nonzero, in " +
         std::to_string(table.rows().size()) + " binades>";
}

BinadeTable count_array(nb::handle object, const std::optional<std::string>& dtype, int threads) {
  const Array array = array_of(object, dtype);
  nb::gil_scoped_release release;
  return count_binades(array.view, threads);
}

/// Returns (table, mean, sum of squares, dtype by its name in safetensors).
nb::tuple measure_array(nb::handle object, const std::optional<std::string>& dtype) {
  const Array array = array_of(object, dtype);
  std::pair<BinadeTable, Moments> measured;
  {
    nb::gil_scoped_release release;
    measured = {count_binades(array.view), moments(array.view)};
  }
  const std::string name(name_of(array.view.dtype));
  return nb::make_tuple(std::move(measured.first), measured.second.mean,
                        measured.second.sum_squares, name);
}

BinadeTable sum_of(BinadeTable a, const BinadeTable& b) {
  a.merge(b);
  return a;
}

void bind_class(nb::module_& module) {
  nb::class_<BinadeTable>(
      module, "BinadeTable",
      "Counts of a tensor's values by binade: exact at every power-of-two scale, "
      "and tables add in any order to the same bits.")
      .def(nb::init<>(), "An empty table.")
      .def_prop_ro("total", &BinadeTable::total, "All values, zeros, NaNs and infinities included.")
      .def_prop_ro("finite_nonzero", &BinadeTable::finite_nonzero)
      .def_prop_ro(
          "zero", [](const BinadeTable& t) { return t.specials().zero; }, "Of both signs.")
      .def_prop_ro("negative_zero", [](const BinadeTable& t) { return t.specials().negative_zero; })
      .def_prop_ro("nan", [](const BinadeTable& t) { return t.specials().nan; })
      .def_prop_ro("inf", &BinadeTable::infinities, "Infinities of both signs.")
      .def_prop_ro(
          "max_abs", [](const BinadeTable& t) { return value_of(t.largest()); },
          "Largest finite magnitude; None when every value is zero or not finite.")
      .def_prop_ro("min_abs_nonzero", [](const BinadeTable& t) { return value_of(t.smallest()); })
      .def_prop_ro("cuts", &BinadeTable::cuts,
                   "Where each binade is divided: fractions in units of 2^-52.")
      .def("rows", &rows_of,
           "Occupied rows, ascending: (exponent, count of each segment, how many are negative).")
      .def("binades", &binades_of, "Occupied binades, ascending: (e, values in [2^e, 2^(e+1))).")
      .def("classify", &classify_by_name, nb::arg("format").none() = "binary16", "scale"_a = 1.0,
           "What rounding the values times `scale` to a format makes of the finite nonzero ones: "
           "{flushed_to_zero, subnormal, normal, overflow}; a count is [low, high] where the table "
           "gives only bounds (at scales that are no power of two).")
      .def("scaled_by_power_of_two", &BinadeTable::scaled_by_power_of_two, "k"_a,
           "The table of the same values times 2^k.")
      .def("merge", &BinadeTable::merge, "other"_a, "Adds another table to this one.")
      .def("encode", &BinadeTable::encode, "The layout on disk: a list of integers.")
      .def_static(
          "decode", [](const std::vector<std::int64_t>& w) { return BinadeTable::decode(w); },
          "words"_a)
      .def(
          "__add__", [](const BinadeTable& a, const BinadeTable& b) { return sum_of(a, b); },
          nb::is_operator())
      .def(
          "__eq__", [](const BinadeTable& a, const BinadeTable& b) { return a == b; },
          nb::is_operator())
      .def("__getstate__", &BinadeTable::encode)
      .def("__setstate__",
           [](BinadeTable& self, const std::vector<std::int64_t>& words) {
             new (&self) BinadeTable(BinadeTable::decode(words));
           })
      .def("__repr__", &repr_of);
}

}  // namespace

void bind_table(nb::module_& module) {
  bind_class(module);
  module.def("count_binades", &count_array, "array"_a, "dtype"_a = nb::none(), "threads"_a = 0);
  module.def("measure", &measure_array, "array"_a, "dtype"_a = nb::none());
}

}  // namespace halfscope::python
