// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "halfscope/log/output_file.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"
#include "reports/export/json.hpp"
#include "reports/markdown/markdown.hpp"
#include "reports/notebook/notebook.hpp"
#include "reports/page/page.hpp"
#include "values.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {

using Json = nlohmann::ordered_json;

namespace {

/// Calls `make` without the GIL and returns its result.
template <class Make>
auto unlocked(const Make& make) {
  nb::gil_scoped_release release;
  return make();
}

nb::object analysis_of(const Judged& self, nb::handle type) {
  ToPython convert;
  const nb::object of_tensor = type.attr("_nested")["tensors"];
  nb::list tensors;
  const Json rest = unlocked([&] {
    return reports::exports::to_json(self.study, [&](Json&& tensor) {
      nb::gil_scoped_acquire acquire;
      tensors.append(convert(tensor, of_tensor));
    });
  });
  nb::object found = convert(rest, type);
  found["tensors"] = tensors;
  return found;
}

nb::object recommendation_of(const Judged& self, nb::handle type) {
  const Json found = unlocked([&] { return reports::exports::to_json(self.study); });
  return ToPython()(found, type);
}

nb::list traces(const std::vector<analyzers::replay::PolicyStudy>& studies,
                const reports::exports::TracesOptions& options, nb::handle type) {
  ToPython convert;
  nb::list out;
  reports::exports::each_trace(studies, options,
                               [&](Json&& trace) { out.append(convert(trace, type)); });
  return out;
}

nb::object shown_of(const Judged& self) {
  return to_python(unlocked([&] {
    return self.advised ? reports::notebook::shown(self.study)
                        : reports::notebook::shown_findings(self.study);
  }));
}

/// Returns the share of the gradients' values that become zero, as text; empty without such values.
std::string flushed_text(const Judged& self) {
  Interval of = 0;
  Classes sum;
  for (const analyzers::underflow::TensorFindings& tensor : self.study.analysis.tensors()) {
    if (!tensor.loss_scaled) continue;
    of += tensor.counts.finite_nonzero;
    sum += tensor.counts.classes;
  }
  if (of.high == 0) return "";
  return reports::answer::class_share_text(sum, &Classes::flushed_to_zero, of);
}

std::size_t require_ending(const std::filesystem::path& path,
                           const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return log::require_ending(path, views);
}

void bind_judged(nb::module_& module) {
  nb::class_<Judged>(module, "Judged")
      .def("analysis", &analysis_of, "type"_a)
      .def("recommendation", &recommendation_of, "type"_a)
      .def(
          "traces",
          [](const Judged& self, nb::handle type) {
            return traces(self.study.policies, {.with_recorded = true}, type);
          },
          "type"_a)
      .def("shown", &shown_of)
      .def("flushed_text", &flushed_text)
      .def("charts",
           [](const Judged& self) { return to_python(reports::notebook::charts_of(self.study)); })
      .def(
          "charts_of_tensor",
          [](const Judged& self, const std::string& tensor) {
            return to_python(reports::notebook::charts_of_tensor(self.study, tensor));
          },
          "tensor"_a)
      .def(
          "markdown",
          [](const Judged& self, const std::string& title) {
            return reports::markdown::report_markdown(self.study, title);
          },
          "title"_a, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "write_page",
          [](const Judged& self, const std::string& title, const std::filesystem::path& out) {
            reports::page::write_report(self.study, title, out);
          },
          "title"_a, "out"_a, nb::call_guard<nb::gil_scoped_release>());
}

void bind_replayed(nb::module_& module) {
  nb::class_<Replayed>(module, "Replayed")
      .def(
          "traces",
          [](const Replayed& self, nb::handle type) {
            return traces(self.study.policies,
                          {.with_recorded = !self.chosen, .framework = self.framework}, type);
          },
          "type"_a)
      .def("shown",
           [](const Replayed& self) {
             return to_python(
                 reports::notebook::shown(self.study.policies, self.framework, self.chosen));
           })
      .def("charts", [](const Replayed& self) {
        return to_python(reports::notebook::charts_of(self.study));
      });
}

void bind_compared(nb::module_& module) {
  nb::class_<Compared>(module, "Compared")
      .def(
          "comparison",
          [](const Compared& self, nb::handle type) {
            return ToPython()(reports::exports::to_json(self.comparison), type);
          },
          "type"_a)
      .def(
          "shown",
          [](const Compared& self) { return to_python(reports::notebook::shown(self.comparison)); })
      .def(
          "write_page",
          [](const Compared& self, const std::string& title, const std::filesystem::path& out) {
            reports::page::write_compare_page(self.comparison, title, out);
          },
          "title"_a, "out"_a, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace

Replayed::Replayed(std::vector<analyzers::replay::PolicyStudy>&& studies, std::string framework_,
                   bool policies)
    : framework(std::move(framework_)), chosen(policies) {
  study.policies = std::move(studies);
  for (const analyzers::replay::PolicyStudy& replayed : study.policies) {
    study.analysis.logs.emplace_back().name = replayed.series.log;
  }
}

void bind_results(nb::module_& module) {
  bind_judged(module);
  bind_replayed(module);
  bind_compared(module);
  module.def("require_ending", &require_ending, "path"_a, "known"_a);
  module.def(
      "share_text",
      [](std::uint64_t count, std::uint64_t of) { return reports::answer::share_text(count, of); },
      "count"_a, "of"_a);
}

}  // namespace halfscope::python
