// SPDX-License-Identifier: Apache-2.0
// Values of the JSON writers as Python's, without text between.
#pragma once

#include <nanobind/nanobind.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>

namespace halfscope::python {

/// Objects become instances of a subclass of dict. Its class attribute `_nested` has the class of
/// the objects in a field, in lists too; where it has none, a field's objects are plain dicts.
/// Equal numbers beside one another in a list are one object. Damaged UTF-8 becomes U+FFFD, as in
/// the JSON.
class ToPython {
 public:
  nanobind::object operator()(const nlohmann::ordered_json& value, nanobind::handle type);

 private:
  nanobind::object object_of(const nlohmann::ordered_json& value, nanobind::handle type);
  nanobind::object list_of(const nlohmann::ordered_json& value, nanobind::handle type);
  nanobind::handle name(const std::string& field);
  nanobind::object nested(nanobind::handle type, nanobind::handle field);

  std::unordered_map<std::string, nanobind::object> names_;  ///< one object a name
};

/// The same of plain values.
nanobind::object to_python(const nlohmann::ordered_json& value);

}  // namespace halfscope::python
