// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_compare.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"
#include "reports/answer/compare_words.hpp"
#include "reports/answer/operation_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {
namespace {

namespace text = reports::answer;
using analyzers::compare::Both;
using analyzers::compare::ComparedTensor;
using analyzers::compare::Comparison;
using analyzers::compare::ElementChanges;
using analyzers::compare::RunTotals;
using log::printable;

void print_line(std::string_view what, const std::string& a, const std::string& b) {
  fmt::print("  {:<28} {:>24} {:>24}\n", what, a, b);
}

std::string share(const Interval& count, const RunTotals& run) {
  return text::share_of_total(count, run.gradients.total);
}

void print_gradients(const Comparison& c) {
  const RunTotals &a = c.runs.a, &b = c.runs.b;
  print_line("loss scale", text::scales_text(a), text::scales_text(b));
  print_line("gradients lost to zero", share(a.lost, a), share(b.lost, b));
  print_line("gradients recorded as zero", share(a.gradients.zero, a), share(b.gradients.zero, b));
  if (!c.own_format) {  // what the format would make of them
    print_line("gradients flushed to zero", share(a.gradients.classes.flushed_to_zero, a),
               share(b.gradients.classes.flushed_to_zero, b));
    print_line("gradients subnormal", share(a.gradients.classes.subnormal, a),
               share(b.gradients.classes.subnormal, b));
  }
  print_line("NaN, infinite or overflow:", "", "");
  print_line("  gradients", text::count_text(a.not_finite), text::count_text(b.not_finite));
}

void print_updates(const Comparison& c) {
  const auto zero = [](const UpdateCounts& u) { return text::share_text(u.zero, u.pairs); };
  print_line("weight updates exactly zero", zero(c.updates->a), zero(c.updates->b));
  print_line("weight updates lost, of all", text::lost_updates_text(c.runs.a, c.updates->a),
             text::lost_updates_text(c.runs.b, c.updates->b));
}

void print_sums(const Comparison& c) {
  const RunTotals &a = c.runs.a, &b = c.runs.b;
  print_line("", "A", "B");
  if (c.gradients != 0) print_gradients(c);
  print_line(c.gradients != 0 ? "  tensors of every role" : "NaN, infinite or overflow",
             text::count_text(a.not_finite_all), text::count_text(b.not_finite_all));
  if (c.updates) print_updates(c);
  if (c.last_loss) {
    print_line(fmt::format("loss at step {}", c.last_loss->step), text::loss_text(c.last_loss->a),
               text::loss_text(c.last_loss->b));
  }
  if (a.steps + b.steps != 0) {
    print_line("skipped", text::skipped_text(a), text::skipped_text(b));
  }
  fmt::print("{}\n\n", c.gradients != 0 ? "\n" + text::lost_note(c) : "");
  if (const std::string parting = text::parting_text(c); !parting.empty()) {
    fmt::print("{}\n\n", parting);
  }
}

void print_operations(const Comparison& c) {
  for (const auto& [name, found] : {std::pair("A", &c.operations.a), {"B", &c.operations.b}}) {
    if (!*found) continue;
    fmt::print("{}:\n", text::operations_heading(**found, name));
    for (const text::FormatLines& format : text::operations_lines(**found)) {
      fmt::print("  {}\n", format.sum);
      for (const std::string& line : format.details) fmt::print("    {}\n", line);
    }
    fmt::print("\n");
  }
}

void print_new_zeros(const Comparison& c) {
  if (!c.new_zeros || c.new_zeros->high == 0) return;
  fmt::print("Zero in B and not in A, gradients at all common steps: {} of {}{}.\n",
             text::count_text(*c.new_zeros), text::count_text(c.runs.b.gradients.total),
             c.new_zeros->exact() ? "" : ", as far as counts show");
  if (c.whole_zeros && !c.new_zeros->exact()) {
    fmt::print("  Exact count at the {} with whole tensors in both: {} of {}.\n",
               text::plural(c.whole_zeros->steps, "step"),
               text::count_text(c.whole_zeros->new_zeros),
               text::count_text(c.whole_zeros->elements));
  }
  const std::string why = text::new_zeros_text(c);
  fmt::print("{}\n", why.empty() ? why : why + "\n");
}

/// The elements of all tensors that both runs have whole.
void print_elements(const Comparison& c) {
  ElementChanges sum;
  std::uint64_t tensors = 0;
  std::size_t steps = 0;
  for (const ComparedTensor& t : c.tensors) {
    if (!t.elements) continue;
    sum += *t.elements;
    steps = std::max(steps, t.elements->steps.size());
    ++tensors;
  }
  if (tensors == 0) return;
  fmt::print(
      "Element by element, tensors of every role ({} at up to {}, {}): {} equal; {} became zero, "
      "{} subnormal, {} infinite, {} NaN.\n\n",
      text::plural(tensors, "whole tensor"), text::plural(steps, "step"),
      text::plural(sum.elements, "element"), text::share_text(sum.equal, sum.elements),
      text::count_text(sum.became_zero), text::count_text(sum.became_subnormal),
      text::count_text(sum.became_infinite), text::count_text(sum.became_nan));
}

std::string lost(const Interval& count, const analyzers::underflow::Counts& counts) {
  return text::share_of_total(count, counts.total);
}

void print_row(const ComparedTensor& t) {
  fmt::print("{:>16} {:>16} {:>17} {:>15} {:>9} {:>9}  {}\n", lost(t.lost.a, t.counts.a),
             lost(t.lost.b, t.counts.b),
             t.new_zeros ? text::count_text(*t.new_zeros) : "other size", text::more_not_finite(t),
             t.max_abs_shift ? text::shift_text(*t.max_abs_shift) : "none",
             t.median_shift ? text::signed_text(*t.median_shift) : "none", printable(t.name));
}

void print_table(const Comparison& c) {
  const auto harmed = static_cast<std::size_t>(
      std::count_if(c.tensors.begin(), c.tensors.end(), [](const auto& t) { return t.harmed; }));
  const std::size_t most = harmed == 0 ? 5 : 15;
  const std::size_t shown = std::min(harmed == 0 ? c.tensors.size() : harmed, most);
  fmt::print("{}\n",
             harmed == 0
                 ? std::string("No tensor is harmed in B. The magnitudes differ most in:")
                 : fmt::format("{} of {} harmed in B, worst first:", text::count_text(harmed),
                               text::plural(c.tensors.size(), "tensor")));
  constexpr std::string_view kColumns = "{:>16} {:>16} {:>17} {:>15} {:>9} {:>9}  {}\n";
  fmt::print(kColumns, "lost to zero:", "lost to zero:", "zero in B,",
             "NaN, inf, over:", "largest,", "median,", "");
  fmt::print(kColumns, "A", "B", "not in A", "B - A", "B/A: 2^", "B/A: 2^", "tensor");
  for (std::size_t i = 0; i < shown; ++i) print_row(c.tensors[i]);
  if (shown < c.tensors.size()) {
    fmt::print("and {} more; --json - shows all\n", c.tensors.size() - shown);
  }
}

void print_left_out(const Comparison& c) {
  std::size_t steps_a = 0, steps_b = 0, steps = 0;
  for (const ComparedTensor& t : c.tensors) {
    steps = std::max(steps, t.steps.size());
    steps_a = std::max(steps_a, t.left_out.a.size());
    steps_b = std::max(steps_b, t.left_out.b.size());
  }
  fmt::print("{} in both, at {} or fewer that both have.", text::plural(c.tensors.size(), "tensor"),
             text::plural(steps, "step"));
  if (steps_a + steps_b != 0) {
    fmt::print(" Skipped: {} only in A, {} only in B.", text::plural(steps_a, "step"),
               text::plural(steps_b, "step"));
  }
  if (!c.only.a.empty() || !c.only.b.empty()) {
    fmt::print(" {} only in A, {} only in B.", text::plural(c.only.a.size(), "tensor"),
               text::plural(c.only.b.size(), "tensor"));
  }
  fmt::print("\n\n");
}

}  // namespace

void print_comparison(const Comparison& c) {
  fmt::print("A: {}\nB: {}\nIn {}.\n\n{}\n{}\n\n", printable(c.logs.a), printable(c.logs.b),
             text::counted_for_text(c), text::comparison_verdict(c), text::comparison_answer(c));
  print_sums(c);
  print_operations(c);
  print_new_zeros(c);
  print_elements(c);
  print_left_out(c);
  print_table(c);
}

}  // namespace halfscope::cli::terminal
