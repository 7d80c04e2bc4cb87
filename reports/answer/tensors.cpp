// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "reports/answer/formats.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::Analysis;
using analyzers::underflow::Counts;
using analyzers::underflow::LogFindings;
using analyzers::underflow::TensorFindings;
using analyzers::underflow::TensorPeaks;
using log::Role;

namespace {

Interval nonfinite(const Counts& counts) { return counts.nan + counts.inf; }

double share_of(const Interval& count, const TensorFindings& t) {
  const std::uint64_t n = t.counts.finite_nonzero.low;
  return n == 0 ? 0.0 : static_cast<double>(count.high) / static_cast<double>(n);
}

/// Returns the order in which roles occur within a step: NaN in an early one may cause the others.
int place_in_step(Role role) {
  switch (role) {
    case Role::weight:
    case Role::master_weight: return 0;
    case Role::activation: return 1;
    case Role::loss: return 2;
    case Role::activation_grad: return 3;
    case Role::local_weight_grad: return 4;
    case Role::weight_grad: return 5;
    default: return 6;
  }
}

std::optional<std::int64_t> first_nonfinite_step(const TensorFindings& t) {
  const auto at = std::ranges::find_if(
      t.per_step, [](const auto& step) { return nonfinite(step.counts).low != 0; });
  return at == t.per_step.end() ? std::nullopt : std::optional(at->step);
}

std::size_t steps_of(const LogFindings& log) {
  std::set<std::int64_t> steps;
  for (const TensorFindings& t : log.tensors) {
    for (const auto& step : t.per_step) steps.insert(step.step);
  }
  return steps.size();
}

/// For example "NaN in 40 tensors, first at step 130: activation/0 and 12 more."
std::string nonfinite_text(const LogFindings& log) {
  std::uint64_t tensors = 0, nan = 0, inf = 0;
  std::optional<std::int64_t> first;
  Tensors of_first;
  for (const TensorFindings& t : log.tensors) {
    const auto step = first_nonfinite_step(t);
    if (!step) continue;
    ++tensors;
    nan += t.counts.nan.low;
    inf += t.counts.inf.low;
    if (!first || *step < *first) of_first.clear();
    first = std::min(first.value_or(*step), *step);
    if (*step == *first) of_first.push_back(&t);
  }
  if (tensors == 0) return "";
  const auto* const earliest = *std::ranges::min_element(
      of_first, {}, [](const TensorFindings* t) { return place_in_step(t->role); });
  const std::string when = steps_of(log) == 1 ? "" : fmt::format(", first at step {}", *first);
  const std::string what = nan == 0 ? "Infinity" : inf == 0 ? "NaN" : "NaN or infinity";
  const std::string more =
      of_first.size() > 1 ? fmt::format(" and {} more", of_first.size() - 1) : "";
  return fmt::format("{} in {}{}: {}{}. {} looks for the cause.", what, plural(tensors, "tensor"),
                     when, code(earliest->name), more, code("halfscope recommend"));
}

/// For example "Values of 1 tensor overflow in FP16: activation/0 (10.5 %)."
std::string overflow_text(const Analysis& analysis, const LogFindings& log) {
  constexpr std::size_t kShown = 3;
  const auto overflow_of = [&](const TensorFindings* t) {
    return classes_of(analysis, *t).overflow;
  };
  Tensors over;
  for (const TensorFindings& t : log.tensors) {
    if (overflow_of(&t).low != 0) over.push_back(&t);
  }
  if (over.empty()) return "";
  std::ranges::stable_sort(over, std::ranges::greater{},
                           [&](const TensorFindings* t) { return share_of(overflow_of(t), *t); });
  std::vector<std::string> names;
  for (const TensorFindings* t : over) {
    names.push_back(fmt::format("{} ({})", code(t->name),
                                share_text(overflow_of(t), t->counts.finite_nonzero.high)));
  }
  return fmt::format("Values of {} overflow in {}: {}.", plural(over.size(), "tensor"),
                     people_say(analysis.target.name), listed(names, kShown));
}

/// Adds sentences on NaN, infinities and overflow.
void add_broken(const Analysis& analysis, std::vector<std::string>& sentences) {
  for (const LogFindings& log : analysis.logs) {
    const std::string place = analysis.logs.size() == 1 ? "" : code(log.name) + ": ";
    for (const std::string& text : {nonfinite_text(log), overflow_text(analysis, log)}) {
      if (!text.empty()) sentences.push_back(place + text);
    }
  }
}

/// Returns a caveat on zeros that may be underflow from before the values were recorded.
std::string caveat_text(const Tensors& tensors) {
  std::set<std::string> formats;
  std::uint64_t of = 0, zeros = 0, values = 0;
  for (const TensorFindings* t : tensors) {
    if (t->underflow_identifiable || t->hidden_by_buckets || t->counts.zero.high == 0) continue;
    formats.insert(computed_text(*t));
    ++of;
    zeros += t->counts.zero.high;
    values += t->counts.total;
  }
  if (of == 0) return "";
  return fmt::format(
      "{} computed in {}: values that underflowed there are already zero and not counted here; {} "
      "of their values are zero.",
      of == 1 ? "1 of these tensors was" : fmt::format("{} of these tensors were", of),
      fmt::join(formats, " or "), share_text(zeros, values));
}

std::string sum_text(const Analysis& analysis, const Tensors& tensors, bool gradients) {
  Interval n = 0;
  Classes sum;
  for (const TensorFindings* t : tensors) {
    n += t->counts.finite_nonzero;
    sum += t->counts.classes;
  }
  return fmt::format(
      "{} at loss scale {}: of {} finite nonzero {} in {}, {} become zero, {} subnormal, {} "
      "overflow.",
      people_say(analysis.target.name), scale_text(analysis.loss_scale), count_text(n),
      gradients ? "gradient values" : "values", plural(tensors.size(), "tensor"),
      class_share_text(sum, &Classes::flushed_to_zero, n),
      class_share_text(sum, &Classes::subnormal, n), class_share_text(sum, &Classes::overflow, n));
}

bool has_gradients(const Analysis& analysis) {
  return std::ranges::any_of(analysis.tensors(), &TensorFindings::loss_scaled);
}

Cell class_cell(const TensorFindings& t, Interval Classes::*part) {
  const Classes& classes = t.counts.classes;
  const Interval of = t.counts.finite_nonzero;
  return {class_share_text(classes, part, of), class_share(classes, part, of).high,
          count_text(classes.*part) + " of " + count_text(of), (classes.*part).high == 0};
}

Cell largest_cell(const TensorFindings& t) {
  if (t.max_abs) return {fmt::format("2^{:.1f}", std::log2(*t.max_abs)), *t.max_abs};
  if (!t.max_abs_at_least) return {"none", -1, "", true};
  if (*t.max_abs_at_least <= 0) return {"unknown", -1, "", true};
  return {fmt::format("> 2^{:.1f}", std::log2(*t.max_abs_at_least)), *t.max_abs_at_least};
}

Cell nonfinite_cell(const TensorFindings& t) {
  const Interval values = nonfinite_values(t);
  if (!t.counts.nonfinite_known) return {"unknown", -1, "", true};
  return {count_text(values), static_cast<double>(values.high), "", values.high == 0};
}

Row row_of(const TensorFindings& t) {
  const double zeros = t.counts.total == 0 ? 0
                                           : static_cast<double>(t.counts.zero.high) /
                                                 static_cast<double>(t.counts.total);
  return {{{code(t.name)},
           class_cell(t, &Classes::flushed_to_zero),
           class_cell(t, &Classes::subnormal),
           class_cell(t, &Classes::overflow),
           {share_text(t.counts.zero, t.counts.total), zeros},
           largest_cell(t),
           nonfinite_cell(t),
           {zeros_doubt(t)}}};
}

/// Returns a rank: 0 for NaN or infinities, then overflow, values flushed to zero, and the rest.
int harm_of(const TensorPeaks& t) {
  if (!t.nan_steps.empty() || !t.inf_steps.empty()) return 0;
  if (t.overflows != analyzers::underflow::Answer::no)
    return t.overflows == analyzers::underflow::Answer::yes ? 1 : 2;
  if (t.all_flushed != analyzers::underflow::Answer::no)
    return t.all_flushed == analyzers::underflow::Answer::yes ? 3 : 4;
  return 5;
}

std::string steps_text(const std::vector<std::int64_t>& steps) {
  return steps.size() == 1 ? fmt::format("step {}", steps.front())
                           : fmt::format("{} steps, first {}", steps.size(), steps.front());
}

/// For example "0.9999 to 1" or "at most 5e-05". Empty if no value is finite.
std::string largest_text(const TensorPeaks& t) {
  if (!t.max_abs) return "";
  const std::string most = fmt::format("{:.4g}", *t.max_abs);
  if (!t.max_abs_at_least) return most;
  if (*t.max_abs_at_least <= 0) return "at most " + most;
  const std::string least = fmt::format("{:.4g}", *t.max_abs_at_least);
  return least == most ? most : least + " to " + most;
}

/// Returns the effect of the target format on the tensor's values.
std::string verdict_of(const TensorPeaks& t) {
  if (!t.nan_steps.empty()) return "NaN at " + steps_text(t.nan_steps);
  if (!t.inf_steps.empty()) return "infinity at " + steps_text(t.inf_steps);
  if (t.overflows == analyzers::underflow::Answer::yes) return "overflows";
  if (t.overflows == analyzers::underflow::Answer::perhaps) return "may overflow";
  if (t.all_flushed == analyzers::underflow::Answer::yes) return "all values become zero";
  if (t.all_flushed == analyzers::underflow::Answer::perhaps)
    return "perhaps all values become zero";
  return t.flushes == analyzers::underflow::Answer::no ? "no value becomes zero"
                                                       : "small values are unknown";
}

std::string title_of(const std::vector<TensorPeaks>& tensors,
                     const analyzers::underflow::Analysis& analysis) {
  std::set<std::int64_t> steps;
  bool gradients = false;
  for (const TensorPeaks& t : tensors) {
    for (const analyzers::frames::StepPeak& peak : t.steps) steps.insert(peak.step);
    gradients |= is_gradient(t.role);
  }
  return fmt::format(
      "Largest magnitudes of {} at {}, without counts{}", plural(tensors.size(), "tensor"),
      plural(steps.size(), "step"),
      gradients ? "; gradients at loss scale " + scale_text(analysis.loss_scale) : "");
}

Row row_of(const TensorPeaks& t, std::size_t rank) {
  const Cell at = t.max_abs ? Cell{std::to_string(t.max_step), static_cast<double>(t.max_step)}
                            : Cell{"", -1, "", true};
  const Cell smallest = t.min_abs_nonzero
                            ? Cell{fmt::format("{:.4g}", *t.min_abs_nonzero), *t.min_abs_nonzero}
                            : Cell{"unknown", -1, "", true};
  return {{{code(t.name)},
           {std::string(name_of(t.role))},
           {largest_text(t), t.max_abs.value_or(-1)},
           at,
           smallest,
           {verdict_of(t), static_cast<double>(rank)}}};
}

}  // namespace

std::string zeros_doubt(const TensorFindings& tensor) {
  if (tensor.hidden_by_buckets) {
    const Bounds share = flushed_share(tensor.counts);
    return fmt::format(
        "The share that becomes zero is not identifiable ({}): a bucket of the log holds zero and "
        "values that are kept.",
        share_range_text(share.low, share.high));
  }
  if (tensor.underflow_identifiable || tensor.counts.zero.high == 0) return "";
  return fmt::format("Computed in {}: zeros may be flushed values, so underflow is unknown.",
                     computed_text(tensor));
}

std::string facts_text(const TensorFindings& tensor) {
  const Counts& counts = tensor.counts;
  std::string out =
      fmt::format("{}, {}, {}: {}, of them {} zero",
                  tensor.source_dtype ? name_of(*tensor.source_dtype) : "format unknown",
                  tensor.shape.empty() ? "one value" : "shape " + extents_text(tensor.shape),
                  plural(tensor.per_step.size(), "step"), plural(counts.total, "value"),
                  count_text(counts.zero));
  out += counts.nonfinite_known
             ? fmt::format(", {} NaN, {} infinite.", count_text(counts.nan), count_text(counts.inf))
             : "; NaN and infinities were not counted.";
  if (tensor.max_abs) out += " Largest " + largest_text(tensor) + ".";
  const std::string doubt = zeros_doubt(tensor);
  if (!doubt.empty()) out += " " + doubt;
  if (doubt.empty() && tensor.suspected_fp16) {
    out += " All values are FP16 values: it may have been computed in FP16.";
  }
  if (!tensor.unscale_exact) out += " Counts are bounds: the recorded scale is no power of two.";
  return out;
}

std::vector<std::string> tensors_sentences(const analyzers::Findings& found) {
  const Analysis& analysis = found.analysis;
  std::vector<std::string> sentences;
  if (const auto carried = carried_finding(found)) {  // overflow at a wrong scale means nothing
    sentences.push_back(text_of(*carried));
  } else {
    add_broken(analysis, sentences);
  }
  const bool gradients = has_gradients(analysis);
  const Tensors all = all_tensors(analysis);
  const Tensors tensors = gradients ? counted_of(all) : all;
  sentences.push_back(sum_text(analysis, tensors, gradients));
  std::string caveat = caveat_text(tensors);
  if (!caveat.empty()) sentences.push_back(std::move(caveat));
  return sentences;
}

Table tensors_table(const Analysis& analysis) {
  Table table{Evidence::scales, "Tensors, worst first"};
  Tensors order = worst_first(analysis);
  if (analysis.loss_scale != 1 && has_gradients(analysis)) {
    const std::size_t unscaled =
        std::erase_if(order, [](const auto* t) { return !t->loss_scaled; });
    if (unscaled != 0) {
      table.note =
          fmt::format("Not shown: {} of other roles, which the loss scale does not change.",
                      plural(unscaled, "tensor"));
    }
  }
  table.headings = {"tensor",       "become zero", "subnormal", "overflow",
                    "already zero", "largest",     "NaN, inf",  "remark"};
  table.add_rows(order, [](const TensorFindings* t) { return row_of(*t); });
  const bool remarks = std::ranges::any_of(
      table.rows, [](const Row& row) { return !row.cells.back().text.empty(); });
  if (remarks) return table;
  table.headings.pop_back();
  for (Row& row : table.rows) row.cells.pop_back();
  return table;
}

std::vector<TensorPeaks> peaks_by_harm(std::vector<TensorPeaks> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorPeaks& a, const TensorPeaks& b) {
    if (harm_of(a) != harm_of(b)) return harm_of(a) < harm_of(b);
    return a.max_abs.value_or(0) > b.max_abs.value_or(0);
  });
  return tensors;
}

Table peaks_table(const analyzers::Findings& found) {
  Table table;
  const std::vector<TensorPeaks> order = peaks_by_harm(found.peaks);
  if (order.empty()) return table;
  table.title = title_of(order, found.analysis);
  table.headings = {"tensor",
                    "role",
                    "largest magnitude",
                    "at step",
                    "smallest is at least",
                    "in " + people_say(found.analysis.target.name)};
  table.add_rows(order, [&](const TensorPeaks& t) { return row_of(t, table.rows.size()); });
  return table;
}

}  // namespace halfscope::reports::answer
