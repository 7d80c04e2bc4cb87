// SPDX-License-Identifier: Apache-2.0
#include "torch_tensors.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "halfscope/table/count/largest_magnitude.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

nb::object interned(const char* name) { return nb::steal(PyUnicode_InternFromString(name)); }

/// Objects of the module torch and names of attributes, made at the first use, when torch is
/// already imported. Never deleted, since Python ends before static objects are destroyed.
struct Torch {
  nb::object module = nb::module_::import_("torch");
  nb::object tensor = module.attr("Tensor");
  nb::object parameter = module.attr("nn").attr("Parameter");
  nb::object strided = module.attr("strided");
  std::array<std::pair<nb::object, Dtype>, 4> dtypes = {{{module.attr("float32"), Dtype::f32},
                                                         {module.attr("float16"), Dtype::f16},
                                                         {module.attr("bfloat16"), Dtype::bf16},
                                                         {module.attr("float64"), Dtype::f64}}};
  nb::object is_cpu = interned("is_cpu"), is_cuda = interned("is_cuda"),
             layout = interned("layout"), dtype = interned("dtype"), shape = interned("shape"),
             is_contiguous = interned("is_contiguous"), stride = interned("stride"),
             data_ptr = interned("data_ptr"), numel = interned("numel"),
             is_neg = interned("is_neg"), element_size = interned("element_size"),
             requires_grad = interned("requires_grad"), grad_fn = interned("grad_fn"),
             backward_hooks = interned("_backward_hooks"),
             register_hook_dict = interned("_register_hook_dict");
  nb::object ordered_dict = nb::module_::import_("collections").attr("OrderedDict");

  static const Torch& get() {
    static const Torch* const torch = new Torch();
    return *torch;
  }
};

/// Returns true if the elements lie next to each other, in any order of the dimensions.
bool is_dense(nb::handle tensor) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;  // stride, size
  const auto strides = nb::cast<nb::tuple>(tensor.attr(Torch::get().stride)());
  std::size_t place = 0;
  for (const nb::handle size : nb::getattr(tensor, Torch::get().shape)) {
    dimensions.emplace_back(nb::cast<std::int64_t>(strides[place++]), nb::cast<std::int64_t>(size));
  }
  std::sort(dimensions.begin(), dimensions.end());
  std::int64_t expected = 1;
  for (const auto& [stride, size] : dimensions) {
    if (size != 1 && stride != expected) return false;
    expected *= size;
  }
  return true;
}

/// Returns (largest magnitude, or None if there is no value; the tensors for which view_of_torch()
/// is empty). NaN counts as larger than all values.
nb::tuple largest_of_torch(const nb::list& tensors) {
  std::vector<TensorView> views;
  nb::list others;
  for (const nb::handle tensor : tensors) {
    const std::optional<TensorView> view = view_of_torch(tensor);
    if (!view) {
      others.append(tensor);
    } else if (view->count != 0) {
      views.push_back(*view);
    }
  }
  std::optional<double> most;
  {
    nb::gil_scoped_release release;
    for (const TensorView& view : views) {
      const double magnitude = largest_magnitude(view);
      if (!most || std::isnan(magnitude) || magnitude > *most) most = magnitude;
      if (std::isnan(magnitude)) break;
    }
  }
  return nb::make_tuple(most, others);
}

}  // namespace

std::optional<Dtype> dtype_of_torch(nb::handle dtype) {
  for (const auto& [known, ours] : Torch::get().dtypes) {
    if (dtype.is(known)) return ours;
  }
  return std::nullopt;
}

std::optional<TensorView> view_of_torch(nb::handle tensor, Memory memory) {
  const Torch& torch = Torch::get();
  const nb::handle type = tensor.type();
  if (!type.is(torch.tensor) && !type.is(torch.parameter)) return std::nullopt;
  const nb::object& there = memory == Memory::cpu ? torch.is_cpu : torch.is_cuda;
  if (!nb::getattr(tensor, there).is(Py_True)) return std::nullopt;
  if (!nb::getattr(tensor, torch.layout).is(torch.strided)) return std::nullopt;
  if (!tensor.attr(torch.is_contiguous)().is(Py_True) &&
      (memory == Memory::cpu || !is_dense(tensor))) {
    return std::nullopt;
  }
  if (tensor.attr(torch.is_neg)().is(Py_True)) return std::nullopt;  // the signs are not in memory
  const nb::object stored = nb::getattr(tensor, torch.dtype);
  const std::optional<Dtype> dtype = dtype_of_torch(stored);
  if (!dtype) {
    throw nb::type_error((std::string("tensor has dtype ") + nb::str(stored).c_str() +
                          ", expected float16, bfloat16, float32 or float64")
                             .c_str());
  }
  const auto address = nb::cast<std::uintptr_t>(tensor.attr(torch.data_ptr)());
  const auto count = nb::cast<std::size_t>(tensor.attr(torch.numel)());
  if (address == 0 && count != 0) {
    throw nb::type_error("tensor has no values: its storage was freed, or it is traced");
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what PyTorch calls data_ptr()
  return TensorView{*dtype, reinterpret_cast<const std::byte*>(address), count};
}

std::vector<std::uint64_t> torch_shape(nb::handle tensor) {
  std::vector<std::uint64_t> shape;
  for (const nb::handle size : nb::getattr(tensor, Torch::get().shape)) {
    shape.push_back(nb::cast<std::uint64_t>(size));
  }
  return shape;
}

std::size_t bytes_of_torch(nb::handle tensor) {
  const Torch& torch = Torch::get();
  return nb::cast<std::size_t>(tensor.attr(torch.numel)()) *
         nb::cast<std::size_t>(tensor.attr(torch.element_size)());
}

bool hook_on_device(nb::handle tensor, nb::handle hook) {
  const Torch& torch = Torch::get();
  if (!tensor.type().is(torch.tensor) || !nb::getattr(tensor, torch.is_cuda).is(Py_True) ||
      !nb::getattr(tensor, torch.requires_grad).is(Py_True)) {
    return false;
  }
  const nb::object node = nb::getattr(tensor, torch.grad_fn);  // also makes a stale view's anew
  if (node.is_none() || !nb::getattr(tensor, torch.backward_hooks).is_none()) return false;
  const nb::object hooks = torch.ordered_dict();
  nb::setattr(tensor, torch.backward_hooks, hooks);
  node.attr(torch.register_hook_dict)(tensor);
  hooks[nb::int_(-1)] = hook;  // register_hook() numbers from 0
  return true;
}

void bind_torch_tensors(nb::module_& module) {
  module.def("largest_of_torch", &largest_of_torch, "tensors"_a);
}

}  // namespace halfscope::python
