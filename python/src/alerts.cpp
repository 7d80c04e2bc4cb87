// SPDX-License-Identifier: Apache-2.0
// The conditions of --fail-if on a run log that is still being written, and those on numbers of a
// step, for Recorder.alert(); what a condition needs, for the plugin of pytest.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <utility>

#include "analyzers/gates/condition.hpp"
#include "analyzers/study.hpp"
#include "bindings.hpp"
#include "reports/answer/gate_words.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

using analyzers::gates::Condition;
using analyzers::gates::Subject;
using analyzers::gates::Verdict;
using Violations = std::vector<std::pair<std::string, std::string>>;

/// The word that a condition begins with.
std::string field_in(const std::string& text) {
  const auto begin =
      std::ranges::find_if_not(text, [](unsigned char c) { return std::isspace(c); });
  const auto end = std::find_if_not(begin, text.end(),
                                    [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  return {begin, end};
}

Condition condition_called(const std::string& text) {
  const bool of_step = analyzers::gates::has_field(Subject::step, field_in(text));
  Condition condition =
      analyzers::gates::parse_condition(text, of_step ? Subject::step : Subject::tensor);
  if (analyzers::gates::is_of_ranks(condition)) {
    throw std::invalid_argument(
        "'" + text +
        "': a recorder sees its own rank alone; use it in halfscope analyze --fail-if");
  }
  return condition;
}

/// Returns the field of a condition that the recorder tests on a number of each step; empty for
/// other conditions. Throws std::invalid_argument if the condition cannot be used.
std::string field_of_step(const std::string& text) {
  const Condition condition = condition_called(text);
  return analyzers::gates::has_field(Subject::step, condition.field) ? condition.field : "";
}

/// Returns (the command whose --fail-if tests the condition, true if it needs sampled steps).
/// Throws std::invalid_argument if there is none.
std::pair<std::string, bool> command_of(const std::string& text) {
  const std::string field = field_in(text);
  const bool of_advice = analyzers::gates::has_field(Subject::recommendation, field) &&
                         !analyzers::gates::has_field(Subject::tensor, field);
  const Condition condition = analyzers::gates::parse_condition(
      text, of_advice ? Subject::recommendation : Subject::tensor);
  return {of_advice ? "recommend" : "analyze", analyzers::gates::is_of_updates(condition)};
}

/// Returns a sentence if the condition holds for a number of a step, or if the number is NaN.
std::optional<std::string> number_violation(const std::string& text, double value) {
  const Condition condition = condition_called(text);
  const analyzers::gates::Measured measured = value;
  const Verdict verdict = analyzers::gates::test(condition, measured);
  if (verdict == Verdict::fails && !std::isnan(value)) return std::nullopt;
  return reports::answer::violation_text(condition, measured, verdict);
}

template <typename Tested>
void test_on(const Condition& condition, const std::string& name, const Tested& tested,
             Violations& out) {
  const auto value = analyzers::gates::measure(condition, tested);
  if (!value) return;
  const Verdict verdict = analyzers::gates::test(condition, *value);
  if (verdict == Verdict::fails) return;
  out.emplace_back(name, reports::answer::violation_text(condition, *value, verdict));
}

/// Returns (tensor, sentence) for each tensor at `step` for which the condition holds or is
/// undecided, gradients at that step's loss scale. The name is empty for conditions on a timeline.
Violations violations(const std::filesystem::path& log, const std::string& text,
                      std::int64_t step) {
  const Condition condition = condition_called(text);
  const bool of_log = analyzers::gates::is_of_timeline(condition);
  nb::gil_scoped_release release;
  analyzers::frames::Selection selection;
  selection.at_run_scale = true;
  if (!of_log) selection.first_step = step, selection.end_step = step + 1;
  const analyzers::Passes passes = {.updates = analyzers::gates::is_of_updates(condition)};
  const analyzers::Findings found =
      analyzers::analyze({log}, {}, selection, passes,
                         [](const std::string&) { return analyzers::frames::Progress(); });
  Violations out;
  if (of_log) {
    for (const auto* timelines : {&found.timelines, &found.run_timelines}) {
      for (const auto& facts : *timelines) test_on(condition, "", facts, out);
    }
    return out;
  }
  for (const auto& tensor : found.analysis.tensors()) {
    if (analyzers::gates::applies(condition, tensor)) test_on(condition, tensor.name, tensor, out);
  }
  return out;
}

}  // namespace

void bind_alerts(nb::module_& module) {
  module.def("field_of_step", &field_of_step, "condition"_a);
  module.def("command_of", &command_of, "condition"_a);
  module.def("number_violation", &number_violation, "condition"_a, "value"_a);
  module.def("violations", &violations, "log"_a, "condition"_a, "step"_a);
}

}  // namespace halfscope::python
