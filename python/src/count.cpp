// SPDX-License-Identifier: Apache-2.0
// count and merge: count writes records of logs, merge combines records into one.
#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string_view>
#include <tuple>
#include <utility>

#include "analyzers/count/count_parts.hpp"
#include "analyzers/count/merge_records.hpp"
#include "bindings.hpp"
#include "halfscope/log/error.hpp"
#include "origins.hpp"
#include "reading.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

using Paths = std::vector<std::filesystem::path>;

std::vector<std::string> count(const Paths& logs, const analyzers::frames::Selection& selection,
                               std::uint64_t index, std::uint64_t of,
                               const std::filesystem::path& out, nb::handle source) {
  analyzers::frames::Notes notes;
  analyzers::count::count_parts(origin_of(logs, source), selection, {index, of}, out, notes,
                                interruptible());
  return in_python(notes);
}

/// The name of a log, the number of its parts in the records, and the number of all its parts.
using LogParts = std::tuple<std::string, std::uint64_t, std::uint64_t>;

/// Returns a path as text of Python; the path need not be UTF-8.
nb::object path_text(const std::string& path) {
  return nb::steal(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

std::vector<LogParts> merged(const Paths& files, const std::filesystem::path& out) {
  const auto merged = analyzers::count::merge_records(
      files, out, analyzers::count::Wanted::any_parts, interruptible());
  if (!merged.problems.empty()) {
    std::string text;
    for (const std::string& problem : merged.problems) text += (text.empty() ? "" : "\n") + problem;
    throw log::BadInput(text);
  }
  std::vector<LogParts> logs;
  for (const auto& log : merged.logs) logs.emplace_back(log.log, log.parts, log.of);
  return logs;
}

nb::list merge(const Paths& files, const std::filesystem::path& out) {
  std::vector<LogParts> logs;
  {
    const nb::gil_scoped_release release;
    logs = merged(files, out);
  }
  nb::list list;
  for (const auto& [log, parts, of] : logs) {
    list.append(nb::make_tuple(path_text(log), parts, of));
  }
  return list;
}

/// Frees the disk space of some bytes of a file. Does nothing if the file system cannot do that.
void punch_hole(int descriptor, std::int64_t begin, std::int64_t length) {
  ::fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, length);
}

/// The parts of logs, and their rows.
class PartReader {
 public:
  PartReader(const Paths& logs, const analyzers::frames::Selection& selection, nb::handle source) {
    const nb::gil_scoped_release release;
    parts_ = analyzers::count::parts_of(origin_of(logs, source), selection);
  }
  std::size_t size() const { return parts_.size(); }

  /// Returns the log, the part, its index and notes, and the columns of the rows: texts as lists,
  /// numbers as bytes.
  nb::dict read(std::size_t index) const {
    const analyzers::frames::Part& part = parts_.at(index);
    analyzers::frames::Notes notes;
    analyzers::count::PartRows rows;
    {
      nb::gil_scoped_release release;
      rows = analyzers::count::rows_of(part, notes, interruptible());
    }
    nb::dict to;
    to["log"] = log::printable(part.log);
    to["part"] = log::printable(part.name);
    to["index"] = part.index;
    to["notes"] = in_python(notes);
    to["tensors"] = tensors(rows);
    to["binades"] = binades(rows);
    to["scalars"] = scalars(rows);
    return to;
  }

 private:
  template <class Row, class Field>
  static nb::list texts(const std::vector<Row>& rows, const Field& field) {
    nb::list list;
    for (const Row& row : rows) list.append(nb::str(log::printable(field(row)).c_str()));
    return list;
  }
  template <class Number, class Row, class Field>
  static nb::bytes numbers(const std::vector<Row>& rows, const Field& field) {
    std::vector<Number> values;
    values.reserve(rows.size());
    for (const Row& row : rows) values.push_back(static_cast<Number>(field(row)));
    return nb::bytes(values.data(), values.size() * sizeof(Number));
  }

  static nb::dict tensors(const analyzers::count::PartRows& rows) {
    using Row = analyzers::count::TensorRow;
    const std::vector<Row>& all = rows.tensors;
    const auto counts = [&](auto field) { return numbers<std::int64_t>(all, field); };
    nb::dict to;
    to["tensor"] = texts(all, [](const Row& row) -> std::string_view { return row.name; });
    to["role"] = texts(all, [](const Row& row) { return row.role; });
    to["dtype"] = texts(all, [](const Row& row) { return row.dtype; });
    to["step"] = counts([](const Row& row) { return row.step; });
    to["scale"] = numbers<double>(all, [](const Row& row) { return row.scale; });
    to["total"] = counts([](const Row& row) { return row.total; });
    to["zero_low"] = counts([](const Row& row) { return row.zero.low; });
    to["zero_high"] = counts([](const Row& row) { return row.zero.high; });
    to["nan_low"] = counts([](const Row& row) { return row.nan.low; });
    to["nan_high"] = counts([](const Row& row) { return row.nan.high; });
    to["inf_low"] = counts([](const Row& row) { return row.inf.low; });
    to["inf_high"] = counts([](const Row& row) { return row.inf.high; });
    return to;
  }

  static nb::dict binades(const analyzers::count::PartRows& rows) {
    using Row = analyzers::count::BinadeRow;
    const std::vector<Row>& all = rows.binades;
    nb::dict to;
    to["row"] = numbers<std::int64_t>(all, [](const Row& row) { return row.tensor; });
    to["exponent"] = numbers<std::int64_t>(all, [](const Row& row) { return row.exponent; });
    to["low"] = numbers<double>(all, [](const Row& row) { return row.low; });
    to["high"] = numbers<double>(all, [](const Row& row) { return row.high; });
    to["count"] = numbers<std::int64_t>(all, [](const Row& row) { return row.count; });
    to["negative"] = numbers<std::int64_t>(all, [](const Row& row) { return row.negative; });
    return to;
  }

  static nb::dict scalars(const analyzers::count::PartRows& rows) {
    using Row = analyzers::count::ScalarRow;
    const std::vector<Row>& all = rows.scalars;
    nb::dict to;
    to["step"] = numbers<std::int64_t>(all, [](const Row& row) { return row.step; });
    to["scalar"] = texts(all, [](const Row& row) -> std::string_view { return row.name; });
    to["value"] = numbers<double>(all, [](const Row& row) { return row.value; });
    return to;
  }

  analyzers::frames::Parts parts_;
};

}  // namespace

void bind_count(nb::module_& module) {
  module.def("count", &count, "logs"_a, "selection"_a, "index"_a, "of"_a, "out"_a,
             "source"_a = nb::none(), nb::call_guard<nb::gil_scoped_release>());
  module.def("punch_hole", &punch_hole, "descriptor"_a, "begin"_a, "length"_a);
  module.def("merge", &merge, "files"_a, "out"_a);
  nb::class_<PartReader>(module, "PartReader")
      .def(nb::init<const Paths&, const analyzers::frames::Selection&, nb::handle>(), "logs"_a,
           "selection"_a, "source"_a = nb::none())
      .def("__len__", &PartReader::size)
      .def("read", &PartReader::read, "index"_a);
}

}  // namespace halfscope::python
