// SPDX-License-Identifier: Apache-2.0
// Hooks on parameters. Each runs at every step, so one that has nothing to do must cost little.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

/// State that the hooks of all parameters share. The GIL protects it.
struct Passes {
  nb::object number;        ///< function that returns the number of the running backward pass
  bool open = true;         ///< False: backward passes do not belong to the step
  std::int64_t known = -2;  ///< number of a pass whose gradients are counted and no more; -2: none
  std::int64_t epoch = 0;   ///< number of the present count
  std::int64_t most = 0;    ///< most gradients of one parameter in the present count

  explicit Passes(nb::object function) : number(std::move(function)) {}

  /// Counts the gradients of all parameters anew.
  void begin() {
    ++epoch;
    most = 0;
    end();
  }
  /// Forgets the running pass.
  void end() { known = -2; }
};

/// A hook on a parameter's gradient. It counts the gradients that arrive.
struct PassHook {
  nb::object passes, arrived;  ///< arrived(number of the pass, gradient): called unless it is known
  std::int64_t epoch = -1, times = 0;

  /// Returns how many gradients arrived before.
  std::int64_t count() {
    auto& all = nb::cast<Passes&>(passes);
    if (std::exchange(epoch, all.epoch) != all.epoch) times = 0;
    all.most = std::max(all.most, times + 1);
    return times++;
  }

  void call(const nb::object& gradient) {
    const auto& all = nb::cast<const Passes&>(passes);
    if (!all.open || gradient.is_none()) return;
    const auto number = nb::cast<std::int64_t>(all.number());
    if (number == all.known) {
      count();
    } else {
      arrived(number, gradient);
    }
  }
};

// For Python's collector: arrived() refers to the parameter, and so to the hook itself.

int traverse_hook(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const PassHook& hook = *nb::inst_ptr<PassHook>(self);
  Py_VISIT(hook.passes.ptr());
  Py_VISIT(hook.arrived.ptr());
  return 0;
}

int clear_hook(PyObject* self) {
  PassHook& hook = *nb::inst_ptr<PassHook>(self);
  hook.passes.reset();
  hook.arrived.reset();
  return 0;
}

PyType_Slot hook_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_hook)},
                            {Py_tp_clear, reinterpret_cast<void*>(&clear_hook)},
                            {0, nullptr}};

/// Returns true if two lists hold the same objects.
bool same_objects(const nb::list& a, const nb::list& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!nb::handle(a[i]).is(nb::handle(b[i]))) return false;
  }
  return true;
}

/// Returns (those of the parameters that have a gradient, their gradients).
nb::tuple gradients_of(const nb::list& parameters) {
  static const nb::object& name = *new nb::object(nb::steal(PyUnicode_InternFromString("grad")));
  nb::list there, gradients;
  for (const nb::handle parameter : parameters) {
    const nb::object gradient = nb::getattr(parameter, name);
    if (gradient.is_none()) continue;
    there.append(parameter);
    gradients.append(gradient);
  }
  return nb::make_tuple(there, gradients);
}

}  // namespace

void bind_passes(nb::module_& module) {
  nb::class_<Passes>(module, "Passes")
      .def(nb::init<nb::object>(), "number"_a)
      .def_rw("open", &Passes::open)
      .def_rw("known", &Passes::known)
      .def_ro("most", &Passes::most)
      .def("begin", &Passes::begin)
      .def("end", &Passes::end);
  nb::class_<PassHook>(module, "PassHook", nb::type_slots(hook_slots))
      .def(
          "__init__",
          [](PassHook* self, nb::object passes, nb::object arrived) {
            new (self) PassHook{std::move(passes), std::move(arrived)};
          },
          "passes"_a, "arrived"_a)
      .def("count", &PassHook::count)
      .def("__call__", &PassHook::call, "gradient"_a.none());
  module.def("same_objects", &same_objects, "a"_a, "b"_a);
  module.def("gradients_of", &gradients_of, "parameters"_a);
}

}  // namespace halfscope::python
