// SPDX-License-Identifier: Apache-2.0
// Arrays of the caller as a log: a safetensors file whose values are the arrays themselves.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <vector>

#include "analyzers/readers/input/memory_input.hpp"
#include "array.hpp"
#include "bindings.hpp"
#include "halfscope/log/safetensors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

/// The file. It can be read at its path between open() and close().
class TensorsInMemory {
 public:
  /// tensors: (name, array, dtype of its bits or None). Throws as array_of(), and log::BadInput.
  TensorsInMemory(const std::string& path, const nb::list& tensors,
                  const std::map<std::string, std::string>& metadata)
      : path_(path) {
    std::vector<log::RawTensor> raw;
    for (const nb::handle item : tensors) {
      const auto tensor = nb::cast<nb::tuple>(item);
      const Array& array = arrays_.emplace_back(
          array_of(tensor[1], nb::cast<std::optional<std::string>>(tensor[2])));
      raw.push_back({nb::cast<std::string>(tensor[0]),
                     std::string(name_of(array.view.dtype)),
                     array.shape,
                     {nullptr, std::span(array.view.data, array.view.bytes())}});
    }
    head_ = log::safetensors_head(raw, metadata, path);
    pieces_.push_back(std::as_bytes(std::span(head_)));
    for (const log::RawTensor& tensor : raw) pieces_.push_back(tensor.values.bytes);
  }

  void open() { input_.emplace(path_, pieces_); }
  void close() { input_.reset(); }

 private:
  std::string path_, head_;
  std::vector<Array> arrays_;
  std::vector<std::span<const std::byte>> pieces_;
  std::optional<analyzers::readers::input::MemoryInput> input_;
};

}  // namespace

void bind_tensors_in_memory(nb::module_& module) {
  nb::class_<TensorsInMemory>(module, "TensorsInMemory")
      .def(nb::init<const std::string&, const nb::list&,
                    const std::map<std::string, std::string>&>(),
           "path"_a, "tensors"_a, "metadata"_a)
      .def("open", &TensorsInMemory::open)
      .def("close", &TensorsInMemory::close);
}

}  // namespace halfscope::python
