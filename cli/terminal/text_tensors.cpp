// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "cli/terminal/text_histogram.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/shares.hpp"
#include "reports/answer/summary.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {
namespace {

using analyzers::underflow::Analysis;
using analyzers::underflow::LogFindings;
using analyzers::underflow::TensorFindings;
using log::Role;
using reports::answer::class_share_text;
using reports::answer::count_text;
using reports::answer::plural;
using reports::answer::share_text;
using reports::answer::Tensors;

Interval nonfinite(const analyzers::underflow::Counts& counts) { return counts.nan + counts.inf; }

double share_of(const Interval& count, const TensorFindings& t) {
  const std::uint64_t n = t.counts.finite_nonzero.low;
  return n == 0 ? 0.0 : static_cast<double>(count.high) / static_cast<double>(n);
}

bool acts_on_any(const Analysis& analysis) {
  return std::any_of(analysis.tensors().begin(), analysis.tensors().end(),
                     [](const auto& t) { return t.counted; });
}

/// What carries no loss scale is counted without one.
bool is_shown(const Analysis& analysis, const TensorFindings& t) {
  return t.counted || analysis.loss_scale == 1 || !acts_on_any(analysis);
}

Interval overflow_of(const Analysis& analysis, const TensorFindings& t) {
  return reports::answer::classes_of(analysis, t).overflow;
}

Tensors shown_tensors(const Analysis& analysis) {
  Tensors order = reports::answer::worst_first(analysis);
  std::erase_if(order, [&](const TensorFindings* t) { return !is_shown(analysis, *t); });
  return order;
}

/// Where a role's values come up within a step: what comes first may have broken the rest.
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
  for (const auto& step : t.per_step) {
    if (nonfinite(step.counts) != 0) return step.step;
  }
  return std::nullopt;
}

std::string and_more(std::size_t all, std::size_t shown) {
  return all > shown ? fmt::format(" and {} more", all - shown) : "";
}

/// "NaN in 40 tensors, first at step 130: activation/0 and 12 more."
std::string nonfinite_text(const LogFindings& log) {
  std::uint64_t tensors = 0, nan = 0, inf = 0;
  std::set<std::int64_t> steps;
  std::optional<std::int64_t> first;
  Tensors of_first;
  for (const TensorFindings& t : log.tensors) {
    for (const auto& step : t.per_step) steps.insert(step.step);
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
  const auto earliest = std::min_element(
      of_first.begin(), of_first.end(),
      [](const auto* a, const auto* b) { return place_in_step(a->role) < place_in_step(b->role); });
  const std::string when = steps.size() == 1 ? "" : fmt::format(", first at step {}", *first);
  return fmt::format("{} in {}{}: {}{} (halfscope recommend looks for the cause).\n",
                     nan == 0   ? "Infinity"
                     : inf == 0 ? "NaN"
                                : "NaN or infinity",
                     plural(tensors, "tensor"), when, log::printable((*earliest)->name),
                     and_more(of_first.size(), 1));
}

/// "Overflow in 1 tensor: activation/0 (10.5 %)."
std::string overflow_line(const Analysis& analysis, const LogFindings& log) {
  constexpr std::size_t kShown = 3;
  Tensors over;
  for (const TensorFindings& t : log.tensors) {
    if (overflow_of(analysis, t).low != 0) over.push_back(&t);
  }
  if (over.empty()) return "";
  std::stable_sort(over.begin(), over.end(), [&](const auto* a, const auto* b) {
    return share_of(overflow_of(analysis, *a), *a) > share_of(overflow_of(analysis, *b), *b);
  });
  std::string names;
  for (std::size_t i = 0; i < std::min(kShown, over.size()); ++i) {
    names += fmt::format(
        "{}{} ({})", i == 0 ? "" : ", ", log::printable(over[i]->name),
        share_text(overflow_of(analysis, *over[i]), over[i]->counts.finite_nonzero.high));
  }
  return fmt::format("Values of {} overflow in {}: {}{}.\n", plural(over.size(), "tensor"),
                     analysis.target.name, names, and_more(over.size(), kShown));
}

/// What no count of underflow tells: empty where all is well.
std::string broken_text(const Analysis& analysis) {
  std::string text;
  for (const LogFindings& log : analysis.logs) {
    const std::string place = analysis.logs.size() == 1 ? "" : log::printable(log.name) + ": ";
    for (const std::string& line : {nonfinite_text(log), overflow_line(analysis, log)}) {
      if (!line.empty()) text += place + line;
    }
  }
  return text.empty() ? "" : text + "\n";
}

/// Zeros that may have been something else before they were recorded.
std::string caveat_text(const Tensors& tensors) {
  std::set<std::string> formats;
  std::uint64_t of = 0, zeros = 0, values = 0;
  for (const TensorFindings* t : tensors) {
    if (t->underflow_identifiable || t->hidden_by_buckets || t->counts.zero.high == 0) continue;
    formats.insert(reports::answer::computed_text(*t));
    ++of;
    zeros += t->counts.zero.high;
    values += t->counts.total;
  }
  if (of == 0) return "";
  std::string names;
  for (const std::string& format : formats) names += (names.empty() ? "" : " or ") + format;
  return fmt::format(
      "  {} computed in {}: values that underflowed there are already zero and not counted here;\n "
      " {} of their values are zero.\n",
      of == 1 ? "1 of these tensors was" : fmt::format("{} of these tensors were", of), names,
      share_text(zeros, values));
}

/// Of the gradients where there are any, else of everything.
std::string summary_text(const Analysis& analysis) {
  Interval n = 0;
  Tensors tensors;
  Classes sum;
  const bool gradients = acts_on_any(analysis);
  for (const TensorFindings& t : analysis.tensors()) {
    if (gradients && !t.counted) continue;
    tensors.push_back(&t);
    n += t.counts.finite_nonzero;
    sum += t.counts.classes;
  }
  return fmt::format(
             "In {} at loss scale {}, of {} finite nonzero {} in {}:\n"
             "  {} become zero, {} subnormal, {} overflow.\n",
             analysis.target.name, reports::answer::scale_text(analysis.loss_scale), count_text(n),
             gradients ? "gradient values" : "values", plural(tensors.size(), "tensor"),
             class_share_text(sum, &Classes::flushed_to_zero, n),
             class_share_text(sum, &Classes::subnormal, n),
             class_share_text(sum, &Classes::overflow, n)) +
         caveat_text(tensors) + "\n";
}

/// Why a tensor's zeros, or what becomes one, are not known; empty where they are.
std::string doubt_text(const TensorFindings& t) {
  if (t.hidden_by_buckets) return "  (zeros unknown: a bucket holds zeros and other values)";
  if (t.underflow_identifiable || t.counts.zero.high == 0) return "";
  return fmt::format("  (computed in {}: zeros may be underflow)",
                     reports::answer::computed_text(t));
}

constexpr std::size_t kNumbers = 6;
using Cells = std::array<std::string, kNumbers + 1>;  // the last one is the name

Cells cells_of(const TensorFindings& t) {
  const Interval n = t.counts.finite_nonzero;
  const Classes& c = t.counts.classes;
  return {class_share_text(c, &Classes::flushed_to_zero, n),
          class_share_text(c, &Classes::subnormal, n),
          class_share_text(c, &Classes::overflow, n),
          share_text(t.counts.zero, t.counts.total),
          t.max_abs            ? fmt::format("2^{:.1f}", std::log2(*t.max_abs))
          : t.max_abs_at_least ? fmt::format("> 2^{:.1f}", std::log2(*t.max_abs_at_least))
                               : "none",
          t.counts.nonfinite_known ? count_text(reports::answer::nonfinite_values(t)) : "unknown",
          log::printable(t.name) + doubt_text(t)};
}

/// Right-aligned numbers, then names. Bounds may need more room than single numbers.
std::string aligned(const std::vector<Cells>& rows) {
  std::array<std::size_t, kNumbers> widths = {14, 14, 12, 12, 10, 12};
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < kNumbers; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < kNumbers; ++i) text += fmt::format("{:>{}} ", row[i], widths[i]);
    text += " " + row[kNumbers] + "\n";
  }
  return text;
}

/// Worst first; a screenful.
std::string table_text(const Analysis& analysis) {
  constexpr std::size_t kShown = 25;
  const Tensors order = shown_tensors(analysis);
  std::vector<Cells> rows = {
      {"become zero", "subnormal", "overflow", "already zero", "largest", "NaN, inf", "tensor"}};
  for (std::size_t i = 0; i < std::min(kShown, order.size()); ++i) {
    rows.push_back(cells_of(*order[i]));
  }
  std::string text = aligned(rows);
  if (order.size() > kShown) {
    text += fmt::format("and {} more; --json - or --csv - shows all\n", order.size() - kShown);
  }
  if (order.size() < analysis.tensors().size()) {
    text += fmt::format("Not shown: {} of other roles, which the loss scale does not change.\n",
                        plural(analysis.tensors().size() - order.size(), "tensor"));
  }
  return text;
}

}  // namespace

std::string tensors_text(const analyzers::Findings& found) {
  const Analysis& analysis = found.analysis;
  const std::string carried = reports::answer::carried_text(found);  // then overflow means nothing
  const std::string histogram = histogram_text(analysis);
  return (carried.empty() ? broken_text(analysis) : carried + "\n\n") + summary_text(analysis) +
         histogram + (histogram.empty() ? "" : "\n") + table_text(analysis);
}

}  // namespace halfscope::cli::terminal
