// SPDX-License-Identifier: Apache-2.0
// Rounding in place and loss scaling, for halfscope.torch.emulate. Private: its Python side
// is halfscope/torch/emulate*.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nlohmann/json.hpp>

#include <span>
#include <string>
#include <utility>
#include <variant>

#include "bindings.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/policy/policy.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

using Floats = nb::ndarray<float, nb::c_contig, nb::device::cpu>;

/// Rounds each value in place to the format, to nearest, ties to even.
void round_values(const Floats& values, const std::string& format) {
  const Format to = format_named(format).format;
  const std::span<float> memory(values.data(), values.size());
  nb::gil_scoped_release release;
  quantise(to, memory);
}

struct SettingToPython {
  nb::object operator()(std::monostate) const { return nb::none(); }
  template <class T>
  nb::object operator()(const T& value) const {
    return nb::cast(value);
  }
};

/// Returns {"policy": name, SETTING: value, ...}, as in run.json.
nb::dict about(const policy::Policy& policy) {
  nb::dict told;
  told["policy"] = std::string(policy::info_of(policy).name);
  for (const auto& [name, value] : policy::settings_of(policy)) {
    told[nb::str(name.data(), name.size())] = std::visit(SettingToPython(), value);
  }
  return told;
}

/// Advances the policy of a loss by one step. Returns ("apply", "skip" or "retry"; the message of
/// an error or "").
std::pair<std::string, std::string> advance(policy::Policy& policy, bool nonfinite,
                                            double max_abs) {
  const policy::Decision made =
      policy::advance(policy, {.nonfinite = nonfinite, .max_abs = max_abs});
  const char* const action = made.action == policy::Action::apply  ? "apply"
                             : made.action == policy::Action::skip ? "skip"
                                                                   : "retry";
  return {action, std::string(made.error)};
}

/// Returns the objects that have a scale each: "loss", "layers" or "tensors".
std::string scales(const policy::Policy& policy) {
  switch (policy::info_of(policy).needs) {
    case policy::Needs::layers: return "layers";
    case policy::Needs::tensors: return "tensors";
    default: return "loss";
  }
}

}  // namespace

void bind_emulate(nb::module_& module) {
  module.def("round_values", &round_values, "values"_a.noconvert(), "format"_a);
  nb::class_<policy::Policy>(module, "Policy")
      .def(
          "__init__",
          [](policy::Policy* self, const std::string& text) {
            new (self) policy::Policy(policy::make(text));
          },
          "text"_a)
      .def_prop_ro("scale", [](const policy::Policy& self) { return policy::scale_of(self); })
      .def_prop_ro("about", &about)
      .def_prop_ro("scales", &scales)
      .def("advance", &advance, "nonfinite"_a, "max_abs"_a);
}

}  // namespace halfscope::python
