// SPDX-License-Identifier: Apache-2.0
// analyze, recommend, report, policies and compare: logs in, results and the notes on reading out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "analyzers/compare/compare.hpp"
#include "analyzers/readers/common/roles.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/study.hpp"
#include "bindings.hpp"
#include "halfscope/log/error.hpp"
#include "reading.hpp"
#include "reports/answer/comparison.hpp"
#include "reports/answer/policies.hpp"
#include "reports/answer/policy_paste.hpp"
#include "reports/answer/reduction.hpp"
#include "reports/answer/text.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_weights.hpp"
#include "results.hpp"
#include "values.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

using Paths = std::vector<std::filesystem::path>;

log::Role role_called(const std::string& name) {
  if (const auto role = log::find_role(name)) return *role;
  std::string known;
  for (int i = 0; i < static_cast<int>(log::Role::unknown); ++i) {
    known += (i == 0 ? "'" : ", '") + std::string(name_of(static_cast<log::Role>(i))) + "'";
  }
  throw std::invalid_argument("no role is called '" + name + "', expected one of " + known);
}

analyzers::frames::Selection selection_of(
    std::optional<std::int64_t> first, std::optional<std::int64_t> end,
    const std::optional<std::string>& tensor,
    const std::vector<std::pair<std::string, std::string>>& roles,
    std::optional<double> recorded_scale, const std::optional<std::string>& scale_tag,
    double loss_scale, std::optional<double> learning_rate,
    const std::optional<std::string>& read_as, std::optional<std::uint64_t> ranks,
    const std::optional<std::string>& lines) {
  analyzers::frames::Selection selection;
  selection.ranks = ranks;
  selection.lines = lines;
  if (first) selection.first_step = *first;
  if (end) selection.end_step = *end;
  selection.tensor_glob = tensor;
  selection.recorded_scale = recorded_scale;
  selection.scale_tag = scale_tag;
  selection.loss_scale = loss_scale;
  selection.learning_rate = learning_rate;
  if (read_as) selection.read_as = *read_as == "bf16" ? Dtype::bf16 : Dtype::f16;
  for (const auto& [glob, name] : roles) {
    selection.roles.emplace_back(glob, role_called(name));
  }
  return selection;
}

/// A result and the notes on reading the logs.
template <class Result>
using WithNotes = std::pair<Result, std::vector<std::string>>;

/// Returns the same progress callback for every pass.
analyzers::frames::Progress every_phase(const std::string&) { return interruptible(); }

analyzers::underflow::Target target_called(const std::string& format,
                                           const std::string& subnormals) {
  const NamedFormat& named = format_named(format);
  if (const auto rule = find_subnormals(subnormals)) return {named.name, named.format, *rule};
  std::string names;
  for (const NamedSubnormals& row : kSubnormals) {
    names += (names.empty() ? "'" : ", '") + std::string(row.name) + "'";
  }
  throw std::invalid_argument("subnormals is '" + subnormals + "', expected one of " + names);
}

WithNotes<Judged> judged(analyzers::Study&& study, bool advised) {
  std::vector<std::string> notes = in_python(study.analysis.notes);
  return {Judged(std::move(study), advised), std::move(notes)};
}

analyzers::underflow::Target target_or_own(const std::optional<std::string>& format,
                                           const std::string& subnormals) {
  analyzers::underflow::Target target = target_called(format.value_or("binary16"), subnormals);
  target.by_default = !format;
  return target;
}

WithNotes<Judged> analyze_logs(const Paths& logs, const std::string& format,
                               const std::string& subnormals,
                               const analyzers::frames::Selection& selection, bool what_if,
                               bool formats, const std::vector<std::string>& recipes) {
  const analyzers::underflow::Target target = target_called(format, subnormals);
  const analyzers::Passes passes = {.updates = true,
                                    .what_if = what_if,
                                    .needs_tensors = what_if,
                                    .formats = formats || !recipes.empty(),
                                    .recipes = analyzers::formats::recipe_choices(recipes)};
  nb::gil_scoped_release release;
  analyzers::Study found;
  static_cast<analyzers::Findings&>(found) =
      analyzers::analyze(logs, target, selection, passes, every_phase);
  return judged(std::move(found), false);
}

analyzers::underflow::RecommendOptions options_of(int headroom_bits, double target_underflow) {
  analyzers::underflow::RecommendOptions options;
  options.headroom_bits = headroom_bits;
  options.target_underflow = target_underflow;
  return options;
}

WithNotes<Judged> recommend_for_logs(const Paths& logs,
                                     const analyzers::frames::Selection& selection,
                                     const std::optional<std::string>& format, int headroom_bits,
                                     double target_underflow) {
  const analyzers::underflow::Target target = target_or_own(format, "keep");
  nb::gil_scoped_release release;
  return judged(
      analyzers::recommendation(
          analyzers::analyze(logs, target, selection, analyzers::recommend_passes(), every_phase),
          selection, options_of(headroom_bits, target_underflow)),
      true);
}

/// All analyses, as `halfscope report` runs them.
WithNotes<Judged> report_on_logs(const Paths& logs, const analyzers::frames::Selection& selection,
                                 const std::optional<std::string>& format,
                                 const std::string& subnormals, int headroom_bits,
                                 double target_underflow, const std::vector<std::string>& policies,
                                 const std::vector<std::string>& recipes) {
  const analyzers::underflow::Target target = target_or_own(format, subnormals);
  analyzers::Passes passes = analyzers::report_passes();
  passes.recipes = analyzers::formats::recipe_choices(recipes);
  analyzers::replay::PolicyOptions replay;
  for (const std::string& text : policies) {
    replay.policies.push_back(reports::answer::policy_called(text));
  }
  nb::gil_scoped_release release;
  return judged(analyzers::study(analyzers::analyze(logs, target, selection, passes, every_phase),
                                 selection, options_of(headroom_bits, target_underflow), replay),
                true);
}

/// `own_scale`: true to count gradients at the loss scale of their step.
WithNotes<Compared> compare_logs(const std::filesystem::path& a, const std::filesystem::path& b,
                                 const std::optional<std::string>& format,
                                 const std::string& subnormals,
                                 analyzers::frames::Selection selection, bool own_scale,
                                 const std::optional<std::string>& sums) {
  const analyzers::underflow::Target target = target_or_own(format, subnormals);
  std::optional<analyzers::compare::OrderAsked> asked;
  if (sums) asked = reports::answer::order_called(*sums);
  nb::gil_scoped_release release;
  selection.at_run_scale = own_scale;
  analyzers::compare::Comparison found = analyzers::compare::compare_logs(
      a, b, target, {selection, selection}, asked, interruptible());
  std::vector<std::string> notes = in_python(found.notes);
  return {Compared(std::move(found)), std::move(notes)};
}

/// Returns ((sums as objects of `type`, sentences on them), notes). Throws as the command does.
nb::tuple reduce_logs(const Paths& logs, const analyzers::frames::Selection& selection,
                      const std::string& over, const std::optional<std::string>& format,
                      const std::string& order, const std::vector<std::uint64_t>& counts,
                      nb::handle type) {
  analyzers::Findings found;
  std::string text;
  {
    const nb::gil_scoped_release release;
    const analyzers::Passes passes = {
        .needs_tensors = true,
        .reductions = reports::answer::sums_called(over, format, order, counts)};
    found = analyzers::analyze(logs, {}, selection, passes, every_phase);
    if (found.reductions.empty()) {
      throw log::BadInput(reports::answer::no_sums_text(logs.front().string(), over));
    }
    for (const std::string& said : reports::answer::reduction_sentences(found.reductions)) {
      text += (text.empty() ? "" : "\n") + reports::answer::plain(said);
    }
  }
  ToPython convert;
  nb::list all;
  for (const auto& one : reports::exports::reductions_json(found.reductions)) {
    all.append(convert(one, type));
  }
  return nb::make_tuple(nb::make_tuple(all, text), in_python(found.analysis.notes));
}

/// Returns (the fields of `halfscope weights --json` as an object of `type`, notes).
nb::tuple moved_weights(const Paths& logs, const analyzers::frames::Selection& selection,
                        const std::string& copies, const std::filesystem::path& set, bool bytes,
                        const std::optional<std::pair<std::int64_t, std::int64_t>>& steps,
                        nb::handle type) {
  const Dtype dtype = find_dtype(copies).value();
  analyzers::weights::Movement found;
  std::vector<analyzers::weights::Claim> claims;
  {
    const nb::gil_scoped_release release;
    found = analyzers::weights::moved_weights(logs, selection, {dtype, set, bytes, true, steps},
                                              interruptible());
    claims = analyzers::weights::claims_in(logs, selection, interruptible(), found.steps);
  }
  std::vector<std::string> notes = in_python(std::exchange(found.notes, {}));
  auto json = reports::exports::to_json(found);
  reports::exports::put_claims(json, claims);
  return nb::make_tuple(ToPython()(json, type), std::move(notes));
}

analyzers::replay::StepSeries series_of(const std::vector<double>& magnitudes) {
  analyzers::replay::StepSeries series;
  series.from_magnitudes = true;
  for (const double magnitude : magnitudes) {
    if (magnitude < 0) throw nb::value_error("amax has negative values, expected magnitudes");
    series.steps.push_back(static_cast<std::int64_t>(series.seen.size()));
    series.seen.push_back({std::abs(magnitude), 0});
  }
  if (series.steps.empty()) throw nb::value_error("amax is empty, expected a magnitude per step");
  return series;
}

struct Replay {
  std::vector<std::string> policies;
  bool assume_constant = false;
  std::string framework;
  int headroom_bits = 1;
  double target_underflow = 0;

  analyzers::replay::PolicyOptions options() const {
    analyzers::replay::PolicyOptions out;
    for (const std::string& text : policies) {
      out.policies.push_back(reports::answer::policy_called(text));
    }
    out.assume_constant = assume_constant;
    out.targets = {headroom_bits, target_underflow};
    if (!framework.empty()) out.tuned = reports::answer::policy_called(framework);
    return out;
  }

  WithNotes<Replayed> of(std::vector<analyzers::replay::PolicyStudy>&& studies,
                         analyzers::frames::Notes notes) const {
    for (const analyzers::replay::PolicyStudy& study : studies) {
      notes.add_all(study.series.notes);
      if (framework.empty() || study.tuned) continue;
      notes.add(reports::answer::not_tuned_text(study, framework));
    }
    return {Replayed(std::move(studies), framework, !policies.empty()), in_python(notes)};
  }
};

WithNotes<Replayed> replay_log(const std::filesystem::path& log,
                               const analyzers::frames::Selection& selection,
                               const Replay& replay) {
  const analyzers::replay::PolicyOptions options = replay.options();
  nb::gil_scoped_release release;
  analyzers::Findings found = analyzers::analyze(
      {log}, {}, selection, {.series = true, .scalars_suffice = true}, every_phase);
  const analyzers::frames::Notes notes = found.analysis.notes;
  return replay.of(analyzers::study_policies(std::move(found), options), notes);
}

WithNotes<Replayed> replay_magnitudes(const std::vector<double>& magnitudes, const Replay& replay) {
  const analyzers::replay::PolicyOptions options = replay.options();
  analyzers::replay::StepSeries series = series_of(magnitudes);
  nb::gil_scoped_release release;
  std::vector<analyzers::replay::PolicyStudy> studies;
  studies.push_back(analyzers::replay::study_magnitudes(std::move(series), options));
  return replay.of(std::move(studies), {});
}

}  // namespace

void bind_logs(nb::module_& module) {
  nb::class_<analyzers::frames::Selection>(module, "Selection")
      .def(
          "__init__",
          [](analyzers::frames::Selection* self, std::optional<std::int64_t> first,
             std::optional<std::int64_t> end, const std::optional<std::string>& tensor,
             const std::vector<std::pair<std::string, std::string>>& roles,
             std::optional<double> recorded_scale, const std::optional<std::string>& scale_tag,
             double loss_scale, std::optional<double> learning_rate,
             const std::optional<std::string>& read_as, std::optional<std::uint64_t> ranks,
             const std::optional<std::string>& lines) {
            new (self) analyzers::frames::Selection(
                selection_of(first, end, tensor, roles, recorded_scale, scale_tag, loss_scale,
                             learning_rate, read_as, ranks, lines));
          },
          nb::kw_only(), "first"_a.none(), "end"_a.none(), "tensor"_a.none(), "roles"_a,
          "recorded_scale"_a.none(), "scale_tag"_a.none(), "loss_scale"_a, "learning_rate"_a.none(),
          "read_as"_a.none(), "ranks"_a.none(), "lines"_a.none());
  module.def("speaks_of_gradients", &analyzers::readers::common::speaks_of_gradients, "name"_a);
  module.def("analyze", &analyze_logs, "logs"_a, "format"_a, "subnormals"_a, "selection"_a,
             "what_if"_a, "formats"_a, "recipes"_a);
  module.def("recommend", &recommend_for_logs, "logs"_a, "selection"_a, "format"_a.none(),
             "headroom_bits"_a, "target_underflow"_a);
  module.def("report", &report_on_logs, "logs"_a, "selection"_a, "format"_a.none(), "subnormals"_a,
             "headroom_bits"_a, "target_underflow"_a, "policies"_a, "recipes"_a);
  nb::class_<Replay>(module, "Replay")
      .def(
          "__init__",
          [](Replay* self, std::vector<std::string> policies, bool assume_constant,
             std::string framework, int headroom_bits, double target_underflow) {
            new (self) Replay{std::move(policies), assume_constant, std::move(framework),
                              headroom_bits, target_underflow};
          },
          nb::kw_only(), "policies"_a, "assume_constant"_a, "framework"_a, "headroom_bits"_a,
          "target_underflow"_a);
  module.def("usable_scale", &analyzers::frames::usable_scale, "scale"_a);
  module.def("reduce", &reduce_logs, "logs"_a, "selection"_a, "over"_a, "format"_a.none(),
             "order"_a, "counts"_a, "type"_a);
  module.def("weights", &moved_weights, "logs"_a, "selection"_a, "copies"_a, "set"_a, "bytes"_a,
             "steps"_a.none(), "type"_a);
  module.def("policies", &replay_log, "log"_a, "selection"_a, "replay"_a);
  module.def("policies_of", &replay_magnitudes, "magnitudes"_a, "replay"_a);
  module.def("compare", &compare_logs, "a"_a, "b"_a, "format"_a, "subnormals"_a, "selection"_a,
             "own_scale"_a, "sums"_a.none());
}

}  // namespace halfscope::python
