// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace nb = nanobind;

namespace halfscope::python {

using Json = nlohmann::ordered_json;

namespace {

nb::object checked(PyObject* made) {
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

nb::object text(const std::string& value) {
  return checked(
      PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace"));
}

nb::object scalar_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::boolean: return nb::cast(value.get<bool>());
    case Json::value_t::number_integer: return nb::cast(value.get<std::int64_t>());
    case Json::value_t::number_unsigned: return nb::cast(value.get<std::uint64_t>());
    case Json::value_t::number_float: {
      const auto number = value.get<double>();
      return std::isfinite(number) ? nb::cast(number) : nb::none();  // as in the JSON
    }
    case Json::value_t::string: return text(value.get_ref<const std::string&>());
    default: return nb::none();
  }
}

}  // namespace

nb::object ToPython::operator()(const Json& value, nb::handle type) {
  if (value.is_object()) return object_of(value, type);
  if (value.is_array()) return list_of(value, type);
  return scalar_of(value);
}

nb::handle ToPython::name(const std::string& field) {
  nb::object& made = names_[field];
  if (!made.is_valid()) made = text(field);
  return made;
}

nb::object ToPython::nested(nb::handle type, nb::handle field) {
  if (!nb::hasattr(type, "_nested")) return nb::none();
  return type.attr("_nested").attr("get")(field);
}

nb::object ToPython::object_of(const Json& value, nb::handle type) {
  nb::object made = type.is_none() ? nb::object(nb::dict()) : type();
  for (const auto& [field, element] : value.items()) {
    const nb::handle key = name(field);
    const bool holds_objects = element.is_object() || element.is_array();
    const nb::object of = holds_objects && !type.is_none() ? nested(type, key) : nb::none();
    if (PyDict_SetItem(made.ptr(), key.ptr(), (*this)(element, of).ptr()) != 0) {
      throw nb::python_error();
    }
  }
  return made;
}

nb::object ToPython::list_of(const Json& value, nb::handle type) {
  nb::object made = checked(PyList_New(static_cast<Py_ssize_t>(value.size())));
  const Json* before = nullptr;
  nb::object last;
  Py_ssize_t at = 0;
  for (const Json& element : value) {
    const bool same = before != nullptr && element.is_number() &&
                      element.type() == before->type() && element == *before;
    if (!same) last = (*this)(element, type);
    before = &element;
    PyList_SetItem(made.ptr(), at++, nb::object(last).release().ptr());
  }
  return made;
}

nb::object to_python(const Json& value) { return ToPython()(value, nb::none()); }

}  // namespace halfscope::python
