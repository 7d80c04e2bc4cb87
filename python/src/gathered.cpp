// SPDX-License-Identifier: Apache-2.0
#include "gathered.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "array.hpp"
#include "bindings.hpp"
#include "halfscope/table/boundary.hpp"
#include "halfscope/table/count/moment_sums.hpp"
#include "torch_tensors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

std::uint64_t finite_in(const BinadeTable& table) {
  return table.total() - table.specials().nan - table.infinities();
}

/// Returns the narrowest type that represents all values of both types.
Dtype wider(Dtype a, Dtype b) {
  if (a == b) return a;
  return a == Dtype::f64 || b == Dtype::f64 ? Dtype::f64 : Dtype::f32;
}

std::pair<BinadeTable, Moments> measured(const TensorView& view) {
  constexpr std::size_t kSmall = 4096;  // elements; counting fewer is faster than a thread switch
  if (view.count < kSmall) return measure(view);
  nb::gil_scoped_release release;
  return measure(view);
}

/// Adds the current values of a torch tensor. Returns its largest magnitude, None if it has no
/// elements, or False if view_of_torch() is empty.
nb::object add_torch(Gathered& gathered, nb::handle tensor, nb::handle computed) {
  const std::optional<TensorView> view = view_of_torch(tensor);
  if (!view) return nb::bool_(false);
  std::pair<BinadeTable, Moments> counts = measured(*view);
  const std::optional<double> largest = largest_in(counts.first);
  settled(gathered).add({std::move(counts.first), counts.second, view->dtype,
                         dtype_of_torch(computed), torch_shape(tensor)});
  return nb::cast(largest);
}

/// Adds the current values of any other array. `dtype` and exceptions: those of array_of().
void add_array(Gathered& gathered, nb::handle object, const std::optional<std::string>& dtype) {
  Array array = array_of(object, dtype);
  std::pair<BinadeTable, Moments> counts = measured(array.view);
  settled(gathered).add({std::move(counts.first), counts.second, array.view.dtype, std::nullopt,
                         std::move(array.shape)});
}

Gathered gathered_of(const BinadeTable& table, const std::string& dtype, Gathered::Shape shape,
                     double mean, double sum_squares, const std::optional<std::string>& computed) {
  Gathered gathered;
  gathered.add({table,
                {mean, sum_squares},
                dtype_called(dtype),
                computed ? std::optional(dtype_called(*computed)) : std::nullopt,
                std::move(shape)});
  return gathered;
}

}  // namespace

Gathered& settled(Gathered& gathered) {
  nb::gil_scoped_release release;
  gathered.settle();
  return gathered;
}

std::optional<double> largest_in(const BinadeTable& table) {
  if (table.specials().nan != 0) return std::numeric_limits<double>::quiet_NaN();
  if (table.infinities() != 0) return std::numeric_limits<double>::infinity();
  if (const std::optional<Magnitude> m = table.largest()) return to_double(*m);
  return table.specials().zero != 0 ? std::optional(0.0) : std::nullopt;
}

double Gathered::norm_squared() const {
  const double largest = largest_in(all_.table).value_or(0.0);
  return std::isfinite(largest) ? all_.moments.sum_squares : largest;
}

std::uint64_t Gathered::finite() const { return finite_in(all_.table); }

void Gathered::add(Piece&& piece) {
  settle();
  shapes_.push_back(std::move(piece.shape));
  if (shapes_.size() == 1) {
    all_ = std::move(piece);
    return;
  }
  sum_ = sum() + piece.moments.mean * static_cast<double>(finite_in(piece.table));
  all_.table.merge(piece.table);
  all_.moments = {piece.moments.mean, all_.moments.sum_squares + piece.moments.sum_squares};
  all_.dtype = wider(all_.dtype, piece.dtype);
  if (all_.computed != piece.computed) all_.computed.reset();
}

void Gathered::add_later(Piece&& piece, Counts counts, std::size_t index) {
  waiting_.push_back({std::move(piece), std::move(counts), index});
}

void Gathered::settle() {
  std::vector<Waiting> waiting = std::exchange(waiting_, {});
  for (Waiting& one : waiting) {
    std::tie(one.piece.table, one.piece.moments) = one.counts.get()[one.index];
    add(std::move(one.piece));
  }
}

void Gathered::join(Gathered& later) {
  if (later.shapes_.empty()) {  // no piece of `later` is complete: they may still wait
    waiting_.insert(waiting_.end(), later.waiting_.begin(), later.waiting_.end());
    kept_.insert(kept_.end(), later.kept_.begin(), later.kept_.end());
    return;
  }
  settle();
  later.settle();
  if (shapes_.empty()) {
    *this = later;
    return;
  }
  Piece piece = later.all_;
  const double joined = sum() + later.sum();
  add(std::move(piece));
  sum_ = joined;
  shapes_.pop_back();
  shapes_.insert(shapes_.end(), later.shapes_.begin(), later.shapes_.end());
  kept_.insert(kept_.end(), later.kept_.begin(), later.kept_.end());
}

Moments Gathered::moments() const {
  if (shapes_.size() == 1) return all_.moments;
  const auto count = static_cast<double>(finite());
  return {count == 0 ? 0.0 : sum() / count, all_.moments.sum_squares};
}

Gathered::Shape Gathered::shape() const {
  if (shapes_.size() == 1) return shapes_.front();
  const auto same = [&](const Shape& shape) { return shape == shapes_.front(); };
  if (shapes_.empty() || !std::all_of(shapes_.begin(), shapes_.end(), same)) {
    return {all_.table.total()};
  }
  Shape shape = {shapes_.size()};
  shape.insert(shape.end(), shapes_.front().begin(), shapes_.front().end());
  return shape;
}

void bind_gathered(nb::module_& module) {
  nb::class_<Gathered>(module, "Gathered")
      .def(nb::init<>())
      .def_static("of", &gathered_of, "table"_a, "dtype"_a, "shape"_a, "mean"_a, "sum_squares"_a,
                  "computed"_a = nb::none())
      .def("add", &add_torch, "tensor"_a, "computed"_a.none())
      .def("add_array", &add_array, "array"_a, "dtype"_a.none())
      .def("join", &Gathered::join, "later"_a)
      .def("keep", &Gathered::keep, "values"_a)
      .def_prop_ro("kept", &Gathered::kept)
      .def_prop_ro("pieces", &Gathered::pieces)
      .def_prop_ro("largest", [](Gathered& self) { return largest_in(settled(self).table()); })
      .def_prop_ro("norm_squared", [](Gathered& self) { return settled(self).norm_squared(); })
      .def_prop_ro("shape", [](Gathered& self) { return settled(self).shape(); });
}

}  // namespace halfscope::python
