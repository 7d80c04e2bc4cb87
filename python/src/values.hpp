// SPDX-License-Identifier: Apache-2.0
// Converts values of the JSON writers to Python objects, without JSON text.
#pragma once

#include <nanobind/nanobind.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>

namespace halfscope::python {

/// Objects become instances of `type`, a subclass of dict. Its class attribute `_nested` maps a
/// field to the class of the objects in it, also in lists; without an entry they are plain dicts.
/// Equal neighbours in a list of numbers are one object. Damaged UTF-8 becomes U+FFFD.
class ToPython {
 public:
  nanobind::object operator()(const nlohmann::ordered_json& value, nanobind::handle type);

 private:
  nanobind::object object_of(const nlohmann::ordered_json& value, nanobind::handle type);
  nanobind::object list_of(const nlohmann::ordered_json& value, nanobind::handle type);
  nanobind::handle name(const std::string& field);
  nanobind::object nested(nanobind::handle type, nanobind::handle field);

  std::unordered_map<std::string, nanobind::object> names_;  ///< one for each field's name
};

/// Converts a value; its objects become plain dicts.
nanobind::object to_python(const nlohmann::ordered_json& value);

}  // namespace halfscope::python
