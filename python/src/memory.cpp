// SPDX-License-Identifier: Apache-2.0
// Tensors by their address: for the recorder, which knows that they are in CPU memory, in C order
// and alive. A DLPack capsule a tensor would cost more than what is done with a small one.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "halfscope/table/boundary.hpp"
#include "halfscope/table/count/largest_magnitude.hpp"
#include "halfscope/table/count/moment_sums.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

TensorView view_at(std::uintptr_t address, std::size_t count, const std::string& dtype) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what PyTorch calls data_ptr()
  return {dtype_called(dtype), reinterpret_cast<const std::byte*>(address), count};
}

/// As largest_magnitude() of the elements of a table; empty where there are none.
std::optional<double> largest_in(const BinadeTable& table) {
  if (table.specials().nan != 0) return std::numeric_limits<double>::quiet_NaN();
  if (table.infinities() != 0) return std::numeric_limits<double>::infinity();
  if (const std::optional<Magnitude> m = table.largest()) return to_double(*m);
  return table.specials().zero != 0 ? std::optional(0.0) : std::nullopt;
}

/// (table, mean, sum of squares, largest magnitude or None)
nb::tuple measure_at(std::uintptr_t address, std::size_t count, const std::string& dtype) {
  const TensorView view = view_at(address, count, dtype);
  std::pair<BinadeTable, Moments> measured;
  {
    nb::gil_scoped_release release;
    measured = measure(view);
  }
  const std::optional<double> largest = largest_in(measured.first);
  return nb::make_tuple(std::move(measured.first), measured.second.mean,
                        measured.second.sum_squares, largest);
}

/// buffers: (address, count, dtype), each with elements. NaN is larger than all.
double largest_at(const nb::list& buffers) {
  std::vector<TensorView> views;
  views.reserve(buffers.size());
  for (const nb::handle item : buffers) {
    const auto buffer = nb::cast<nb::tuple>(item);
    views.push_back(view_at(nb::cast<std::uintptr_t>(buffer[0]), nb::cast<std::size_t>(buffer[1]),
                            nb::cast<std::string>(buffer[2])));
  }
  nb::gil_scoped_release release;
  double most = 0;
  for (const TensorView& view : views) {
    const double magnitude = largest_magnitude(view);
    if (std::isnan(magnitude)) return magnitude;
    most = std::max(most, magnitude);
  }
  return most;
}

}  // namespace

void bind_memory(nb::module_& module) {
  module.def("measure_at", &measure_at, "address"_a, "count"_a, "dtype"_a);
  module.def("largest_at", &largest_at, "buffers"_a);
}

}  // namespace halfscope::python
