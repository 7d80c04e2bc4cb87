// SPDX-License-Identifier: Apache-2.0
// The extension module `halfscope._halfscope`: conversions and nothing else.
#include <nanobind/nanobind.h>

#include <exception>
#include <optional>
#include <string>

#include "analyzers/frames/message.hpp"
#include "bindings.hpp"
#include "halfscope/device/vector_target.hpp"
#include "halfscope/number/format_names.hpp"

namespace nb = nanobind;

namespace halfscope::python {

const NamedFormat& format_named(const std::string& name) {
  if (const NamedFormat* const found = format_called(name)) return *found;
  throw nb::value_error(("format '" + name + "' is " + why_no_format(name)).c_str());
}

Dtype dtype_called(const std::string& name) {
  if (const std::optional<Dtype> found = find_dtype(name)) return *found;
  throw nb::value_error(("no dtype is called '" + name + "', expected F16, BF16, F32...").c_str());
}

namespace {

/// Raises BadInput in Python, with arguments of Python instead of the command line's flags.
void raise_bad_input(const std::exception_ptr& thrown, void* type) {
  try {
    std::rethrow_exception(thrown);
  } catch (const log::BadInput& error) {
    PyErr_SetString(static_cast<PyObject*>(type),
                    analyzers::frames::message_of(error).in_python().c_str());
  }
}

void bind_bad_input(nb::module_& module) {
  nb::exception<log::BadInput> type(module, "BadInput", PyExc_ValueError);
  type.doc() =
      "Input that cannot be used: one line that says what was found, what was expected, and the "
      "way out.";
  nb::register_exception_translator(raise_bad_input, type.ptr());  // overrides the type's own
}

}  // namespace
}  // namespace halfscope::python

NB_MODULE(_halfscope, module) {
  halfscope::use_vector_target_of_environment();  // an error becomes an ImportError
#ifdef NDEBUG
  nb::set_leak_warnings(false);  // objects alive at exit are not a fault
#endif
  module.doc() = "Bindings of halfscope's libraries; use the package `halfscope`.";
  module.attr("__version__") = HALFSCOPE_VERSION;
  halfscope::python::bind_bad_input(module);
  halfscope::python::bind_table(module);
  halfscope::python::bind_results(module);
  halfscope::python::bind_logs(module);
  halfscope::python::bind_count(module);
  halfscope::python::bind_tensors_in_memory(module);
  halfscope::python::bind_gathered(module);
  halfscope::python::bind_run_log(module);
  halfscope::python::bind_arrays(module);
  halfscope::python::bind_blocks(module);
  halfscope::python::bind_alerts(module);
  halfscope::python::bind_torch_tensors(module);
  halfscope::python::bind_arrivals(module);
  halfscope::python::bind_passes(module);
#ifdef HALFSCOPE_HAS_CUDA
  halfscope::python::bind_device_count(module);
#endif
  halfscope::python::bind_emulate(module);
  halfscope::python::bind_tensor_core(module);
  halfscope::python::bind_optimizer(module);
}
