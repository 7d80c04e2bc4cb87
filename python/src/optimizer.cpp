// SPDX-License-Identifier: Apache-2.0
// Steps of optimizers on arrays. Private: its Python side is halfscope/optimizer.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "array.hpp"
#include "array_memory.hpp"
#include "bindings.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/optimizer/step.hpp"

namespace halfscope::python {
namespace {

using namespace optimizer;
using namespace nb::literals;
using Names = std::vector<std::string_view>;

/// Returns the place of a text among names; throws ValueError if it is none of them.
std::size_t place_of(const char* what, const std::string& text, const Names& names) {
  const auto found = std::ranges::find(names, text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string all;
  for (const auto name : names) all += (all.empty() ? "'" : ", '") + std::string(name) + "'";
  refuse(what + (" is '" + text + "', expected one of ") + all);
}

Names row_names(const auto& rows) {
  Names names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}

/// root: replaces the values of an array by their square roots, or None.
StepOptions step_options(const std::string& processor, const std::string& bound, nb::object root) {
  StepOptions options;
  options.processor = &processors()[place_of("processor", processor, row_names(processors()))];
  options.bound = static_cast<Bound>(place_of("bound", bound, {"nearest", "shortest", "longest"}));
  if (root.is_none()) return options;
  options.root = [root = std::move(root)](std::span<float> values) {
    const nb::gil_scoped_acquire acquire;
    const nb::ndarray<nb::numpy, float> seen(values.data(), {values.size()});
    root(nb::cast(seen, nb::rv_policy::reference));
  };
  return options;
}

template <typename T>
void write_values(Dtype dtype, const T* values, std::size_t start, std::size_t count, void* to) {
  if (to == nullptr) return;
  if constexpr (std::is_same_v<T, float>) {
    if (format_of(dtype).width == 16) {
      const std::span bits(static_cast<std::uint16_t*>(to) + start, count);
      convert(format_of(dtype), std::span(values, count), bits, {.threads = 1});
      return;
    }
  }
  std::memcpy(static_cast<T*>(to) + start, values, count * sizeof(T));
}

/// outputs: of weight, first, second, largest; null for those that are not wanted.
template <typename T>
void run_step(const Variant& row, const Settings& settings, const StepOptions& options,
              const Views& views, const std::array<void*, 4>& outputs) {
  const Step<T> step(row, settings, options);
  for (const auto& [operand, name, view] :
       {std::tuple(Operand::gradient, "gradient", views.gradient),
        {Operand::first, "exp_avg or momentum_buffer", views.first},
        {Operand::second, "exp_avg_sq", views.second},
        {Operand::largest, "max_exp_avg_sq", views.largest}}) {
    if (!step.reads(operand) || view.count == views.count) continue;
    refuse(std::string(name) + " is missing, expected an array: the step reads it");
  }
  const Dtype moved = options.update_only ? Dtype::f32 : options.dtype;
  const nb::gil_scoped_release release;
  step.run(views, 0, views.count, [&](const Results<T>& r) {
    write_values(moved, r.weight, r.start, r.count, outputs[0]);
    write_values(options.dtype, r.first, r.start, r.count, outputs[1]);
    write_values(options.dtype, r.second, r.start, r.count, outputs[2]);
    write_values(options.dtype, r.largest, r.start, r.count, outputs[3]);
  });
}

/// inputs: weight, gradient, first, second, largest; outputs: all but the gradient, new arrays of
/// their sizes; None for those that are missing. bits: the dtype of inputs that hold bits.
void optimizer_step(const std::string& name, const Settings& settings, StepOptions options,
                    const nb::list& inputs, const nb::list& outputs,
                    const std::optional<std::string>& bits) {
  const Variant& row = variants()[place_of("row", name, row_names(variants()))];
  std::vector<Array> owners;
  std::array<TensorView, 5> views;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (inputs[i].is_none() && i != 0) continue;
    views.at(i) = owners.emplace_back(array_of(inputs[i], bits)).view;
  }
  const std::size_t count = views[0].count;
  options.dtype = views[0].dtype;
  std::vector<nb::ndarray<nb::c_contig>> kept;
  std::array<void*, 4> written = {};
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (outputs[i].is_none()) continue;
    written.at(i) = kept.emplace_back(nb::cast<nb::ndarray<nb::c_contig>>(outputs[i])).data();
  }
  const auto run = options.dtype == Dtype::f64 ? run_step<double> : run_step<float>;
  run(row, settings, options, {views[0], views[1], views[2], views[3], views[4], count}, written);
}

nb::list optimizer_rows() {
  nb::list rows;
  constexpr std::array kAccuracies = {"exact", "root", "powers", "random"};
  for (const Variant& row : variants()) {
    rows.append(nb::make_tuple(std::string(row.name), std::string(row.source),
                               kAccuracies.at(static_cast<std::size_t>(row.accuracy))));
  }
  return rows;
}

}  // namespace

void bind_optimizer(nb::module_& module) {
  nb::class_<Settings> settings(module, "OptimizerSettings");
  settings.def("__init__", [](Settings* self, const std::string& algorithm) {
    const std::size_t place = place_of("algorithm", algorithm, {"sgd", "adam", "adamw"});
    new (self) Settings{static_cast<Algorithm>(place)};
  });
  for (const auto& [name, number] : {std::pair("lr", &Settings::lr),
                                     {"beta1", &Settings::beta1},
                                     {"beta2", &Settings::beta2},
                                     {"eps", &Settings::eps},
                                     {"weight_decay", &Settings::weight_decay},
                                     {"momentum", &Settings::momentum},
                                     {"dampening", &Settings::dampening}}) {
    settings.def_rw(name, number);
  }
  settings.def_rw("nesterov", &Settings::nesterov)
      .def_rw("maximize", &Settings::maximize)
      .def_rw("amsgrad", &Settings::amsgrad);
  nb::class_<StepOptions>(module, "StepOptions")
      .def(
          "__init__",
          [](StepOptions* self, const std::string& processor, const std::string& bound,
             nb::object root) {
            new (self) StepOptions(step_options(processor, bound, std::move(root)));
          },
          "processor"_a, "bound"_a, "root"_a.none())
      .def_rw("steps", &StepOptions::steps)
      .def_rw("scale", &StepOptions::scale)
      .def_rw("first", &StepOptions::first)
      .def_rw("threads", &StepOptions::threads)
      .def_rw("moments_are_new", &StepOptions::moments_are_new)
      .def_rw("update_only", &StepOptions::update_only);
  module.def("optimizer_step", &optimizer_step);
  module.def("optimizer_rows", &optimizer_rows);
}

}  // namespace halfscope::python
