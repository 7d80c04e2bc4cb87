// SPDX-License-Identifier: Apache-2.0
// Hooks on gradients of tensors on a GPU. A step runs as long as the CPU needs to launch its
// kernels, so a hook only appends the gradient to a list.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "torch_tensors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

/// A gradient that arrived, with what was known when its hook was added.
struct Arrived {
  nb::object name, microbatch, computed, gradient;
};

/// The gradients that arrived since take(). The GIL protects it.
class Arrivals {
 public:
  /// most: bytes of gradients at which full() is called.
  Arrivals(std::size_t most, nb::object full) : full_(std::move(full)), most_(most) {}

  bool open = false;  ///< False: hooks ignore their gradients

  void add(Arrived&& one) {
    bytes_ += bytes_of_torch(one.gradient);
    arrived_.push_back(std::move(one));
    if (bytes_ >= most_) full_();
  }

  /// Returns and forgets them: (name, microbatch, computed, gradient).
  nb::list take() {
    nb::list all;
    bytes_ = 0;
    for (const Arrived& one : std::exchange(arrived_, {})) {
      all.append(nb::make_tuple(one.name, one.microbatch, one.computed, one.gradient));
    }
    return all;
  }

 private:
  nb::object full_;
  std::size_t most_, bytes_ = 0;
  std::vector<Arrived> arrived_;
};

/// A hook on a tensor's gradient.
struct Arrival {
  nb::object arrivals;
  Arrived known;

  void call(nb::object gradient) const {
    auto& all = nb::cast<Arrivals&>(arrivals);
    if (!all.open || gradient.is_none()) return;  // None: no gradient reached the tensor
    Arrived one = known;
    one.gradient = std::move(gradient);
    all.add(std::move(one));
  }
};

}  // namespace

void bind_arrivals(nb::module_& module) {
  nb::class_<Arrivals>(module, "Arrivals")
      .def(nb::init<std::size_t, nb::object>(), "most"_a, "full"_a)
      .def_rw("open", &Arrivals::open)
      .def(
          "add",
          [](Arrivals& self, nb::object name, nb::object microbatch, nb::object gradient) {
            self.add({std::move(name), std::move(microbatch), nb::none(), std::move(gradient)});
          },
          "name"_a.none(), "microbatch"_a, "gradient"_a)
      .def("take", &Arrivals::take);
  nb::class_<Arrival>(module, "Arrival")
      .def(
          "__init__",
          [](Arrival* self, nb::object arrivals, nb::object name, nb::object microbatch,
             nb::object computed) {
            new (self) Arrival{std::move(arrivals),
                               {std::move(name), std::move(microbatch), std::move(computed), {}}};
          },
          "arrivals"_a, "name"_a, "microbatch"_a, "computed"_a.none())
      .def("__call__", &Arrival::call, "gradient"_a.none());
  module.def("hook_on_device", &hook_on_device, "tensor"_a, "hook"_a);
}

}  // namespace halfscope::python
