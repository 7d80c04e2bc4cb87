// SPDX-License-Identifier: Apache-2.0
// The run log writer. Private: its Python side is halfscope/_run_log.py.
#include "halfscope/log/run_log.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include <utility>

#include "array.hpp"
#include "bindings.hpp"
#include "gathered.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

log::ScaleState state_of(bool scaled) {
  return scaled ? log::ScaleState::scaled : log::ScaleState::unscaled;
}

/// manifest: {"scaled": bool, "sharded": [role], "rank": n, "world_size": n, "about": {...}}
log::Manifest manifest_of(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  log::Manifest manifest;
  manifest.gradients = state_of(json.at("scaled").get<bool>());
  manifest.rank = json.at("rank").get<int>();
  manifest.world_size = json.at("world_size").get<int>();
  *manifest.about = json.at("about");
  for (const std::string name : json.at("sharded")) {
    const std::optional<log::Role> role = log::find_role(name);
    if (!role) throw nb::value_error(("no role is called '" + name + "'").c_str());
    manifest.sharded.push_back(*role);
  }
  return manifest;
}

/// samples: (name, array, dtype of its bits or None)
void write_sample(log::RunLogWriter& writer, std::int64_t step, const nb::list& samples,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<Array> arrays;
  std::vector<log::NamedTensor> tensors;
  for (const nb::handle item : samples) {
    const auto sample = nb::cast<nb::tuple>(item);
    arrays.push_back(array_of(sample[1], nb::cast<std::optional<std::string>>(sample[2])));
    tensors.push_back({nb::cast<std::string>(sample[0]), arrays.back().shape, arrays.back().view});
  }
  nb::gil_scoped_release release;
  writer.write_sample(step, tensors, metadata);
}

void write_scalars(log::RunLogWriter& writer, std::int64_t step, std::optional<double> loss,
                   std::optional<double> learning_rate, std::optional<double> loss_scale,
                   std::optional<bool> found_inf, std::optional<double> max_abs_weight_grad,
                   std::optional<double> max_abs_activation_grad,
                   const std::map<std::string, double>& more) {
  const log::StepScalars scalars{step,
                                 loss,
                                 learning_rate,
                                 loss_scale,
                                 found_inf,
                                 max_abs_weight_grad,
                                 max_abs_activation_grad,
                                 more};
  nb::gil_scoped_release release;
  writer.write(scalars);
}

/// tensors: (name, Gathered, True if it is scaled, scale or None if it is unknown)
void write_tensors(log::RunLogWriter& writer, std::int64_t step, const nb::list& tensors) {
  std::vector<log::TensorRecord> records(tensors.size());
  auto record = records.begin();
  for (const nb::handle item : tensors) {
    const auto fields = nb::cast<nb::tuple>(item);
    const Gathered& gathered = settled(nb::cast<Gathered&>(fields[1]));
    record->name = nb::cast<std::string>(fields[0]);
    record->step = step;
    record->shape = gathered.shape();
    record->source_dtype = gathered.dtype();
    record->computed_dtype = gathered.computed();
    record->state = state_of(nb::cast<bool>(fields[2]));
    record->scale_known = !fields[3].is_none();
    record->scale = record->scale_known ? nb::cast<double>(fields[3]) : 1.0;
    record->moments = gathered.moments();
    record->table = gathered.table();
    ++record;
  }
  nb::gil_scoped_release release;
  writer.write(records);
}

nb::dict scalars_of(const log::StepScalars& scalars) {
  nb::dict values;
  values["loss"] = scalars.loss;
  values["learning_rate"] = scalars.learning_rate;
  values["loss_scale"] = scalars.loss_scale;
  values["found_inf"] = scalars.found_inf;
  values["max_abs_weight_grad"] = scalars.max_abs_weight_grad;
  values["max_abs_activation_grad"] = scalars.max_abs_activation_grad;
  values["more"] = scalars.more.map();
  return values;
}

nb::dict record_of(const log::TensorRecord& record) {
  nb::dict values;
  values["name"] = record.name;
  values["step"] = record.step;
  values["shape"] = nb::tuple(nb::cast(record.shape));
  values["source_dtype"] = std::string(name_of(record.source_dtype));
  values["computed_dtype"] =
      record.computed_dtype ? nb::cast(std::string(name_of(*record.computed_dtype))) : nb::none();
  values["scaled"] = record.state == log::ScaleState::scaled;
  values["scale"] = record.scale_known ? nb::cast(record.scale) : nb::none();
  values["mean"] = record.moments.mean;
  values["sum_squares"] = record.moments.sum_squares;
  values["table"] = record.table;
  return values;
}

/// Returns ({step: scalars}, [record], {step: file of whole tensors}).
nb::tuple read_run_log(const std::filesystem::path& folder) {
  const log::RunLog run_log(folder);
  nb::dict scalars;
  for (const log::StepScalars& step : run_log.scalars()) {
    scalars[nb::int_(step.step)] = scalars_of(step);
  }
  nb::list records;
  run_log.for_each([&](log::TensorRecord&& record) { records.append(record_of(record)); });
  return nb::make_tuple(scalars, records, run_log.samples());
}

}  // namespace

void bind_run_log(nb::module_& module) {
  module.def("read_run_log", &read_run_log, "folder"_a);
  nb::class_<log::RunLogWriter>(module, "RunLogWriter")
      .def(
          "__init__",
          [](log::RunLogWriter* self, const std::filesystem::path& folder,
             const std::string& manifest) {
            new (self) log::RunLogWriter(folder, manifest_of(manifest));
          },
          "folder"_a, "manifest"_a)
      .def("write_scalars", &write_scalars, nb::kw_only(), "step"_a, "loss"_a.none(),
           "learning_rate"_a.none(), "loss_scale"_a.none(), "found_inf"_a.none(),
           "max_abs_weight_grad"_a.none(), "max_abs_activation_grad"_a.none(), "more"_a)
      .def("write_tensors", &write_tensors, "step"_a, "tensors"_a)
      .def("write_sample", &write_sample, "step"_a, "tensors"_a, "metadata"_a);
}

}  // namespace halfscope::python
