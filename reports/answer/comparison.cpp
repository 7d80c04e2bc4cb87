// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::compare::ComparedTensor;
using analyzers::compare::Comparison;
using analyzers::compare::ElementChanges;
using analyzers::compare::RunTotals;
using analyzers::underflow::Counts;

namespace {

/// For example "99.9 % equal, 1 became zero, ...".
std::string changes_text(const ElementChanges& e) {
  return fmt::format("{} equal, {} became zero, {} subnormal, {} infinite, {} NaN",
                     share_text(e.equal, e.elements), count_text(e.became_zero),
                     count_text(e.became_subnormal), count_text(e.became_infinite),
                     count_text(e.became_nan));
}

/// Adds what both runs have, and what only one of them has.
void add_extent(const Comparison& c, std::vector<std::string>& out) {
  std::size_t steps = 0, steps_a = 0, steps_b = 0;
  for (const ComparedTensor& t : c.tensors) {
    steps = std::max(steps, t.steps.size());
    steps_a = std::max(steps_a, t.left_out.a.size());
    steps_b = std::max(steps_b, t.left_out.b.size());
  }
  out.push_back(fmt::format("Both runs have {}, at up to {}.", plural(c.tensors.size(), "tensor"),
                            plural(steps, "common step")));
  if (steps_a + steps_b + c.only.a.size() + c.only.b.size() == 0) return;
  out.push_back(
      fmt::format("Left out, because one run alone has them: {} and {} of A, {} and {} of B.",
                  plural(c.only.a.size(), "tensor"), plural(steps_a, "step"),
                  plural(c.only.b.size(), "tensor"), plural(steps_b, "step")));
}

void add_new_zeros(const Comparison& c, std::vector<std::string>& out) {
  if (!c.new_zeros || c.new_zeros->high == 0) return;
  out.push_back(fmt::format(
      "New zeros, gradient values that are zero in B and not in A: {} of {} at all common steps{}.",
      count_text(*c.new_zeros), count_text(c.runs.b.gradients.total),
      c.new_zeros->exact() ? "" : ", as far as counts show"));
  if (c.whole_zeros && !c.new_zeros->exact()) {
    out.push_back(fmt::format(
        "New zeros are known exactly at {}, where both runs have whole tensors: {} of {}.",
        plural(c.whole_zeros->steps, "step"), count_text(c.whole_zeros->new_zeros),
        count_text(c.whole_zeros->elements)));
  }
  out.push_back(happened_text(c));
}

/// Returns a sentence on the elements of all tensors that both runs stored completely.
std::string elements_text(const Comparison& c) {
  ElementChanges sum;
  std::uint64_t tensors = 0;
  std::size_t steps = 0;
  for (const ComparedTensor& t : c.tensors) {
    if (!t.elements) continue;
    sum += *t.elements;
    steps = std::max(steps, t.elements->steps.size());
    ++tensors;
  }
  if (tensors == 0) return "";
  return fmt::format("Whole tensors of every role, element by element ({} at up to {}, {}): {}.",
                     plural(tensors, "tensor"), plural(steps, "step"),
                     plural(sum.elements, "element"), changes_text(sum));
}

std::vector<std::string> values_of(const Comparison& c) {
  std::vector<std::string> out;
  add_extent(c, out);
  add_new_zeros(c, out);
  out.insert(out.end(), {far_text(c), elements_text(c)});
  std::erase(out, "");
  return out;
}

/// Returns "1", "1024 (2^10)" or "256 (2^8) to 1024 (2^10)"; "not known" without gradients.
std::string scales_text(const RunTotals& run) {
  if (!run.loss_scales) return "not known";
  const auto& [least, largest] = *run.loss_scales;
  return least == largest ? scale_text(least)
                          : fmt::format("{} to {}", scale_text(least), scale_text(largest));
}

std::string skipped_text(const RunTotals& run) {
  return run.steps == 0 ? "not recorded" : count_text(run.skipped.size());
}

/// Returns a difference of log2 values with its sign: "+1.50", "0".
std::string shift_text(double log2) {
  if (std::abs(log2) >= 0.005) return fmt::format("{:+.2f}", log2);
  return log2 == 0 ? "0" : log2 > 0 ? "+0.00" : "-0.00";
}

/// Returns "+12", "0" or "-3".
std::string signed_text(std::int64_t count) {
  if (count == 0) return "0";
  const std::uint64_t magnitude =
      count < 0 ? ~static_cast<std::uint64_t>(count) + 1 : static_cast<std::uint64_t>(count);
  return (count < 0 ? "-" : "+") + count_text(magnitude);
}

/// Returns a row with text(run) for both runs.
template <typename Text>
Row fact(std::string name, const Comparison& c, const Text& text) {
  return {{{std::move(name)}, {text(c.runs.a)}, {text(c.runs.b)}}};
}

template <typename Text>
Row part(std::string name, const Comparison& c, const Text& text) {
  Row out = fact(std::move(name), c, text);
  out.part = true;
  return out;
}

/// Returns a function of a run: the share that count(run) has of its gradient values.
template <typename Count>
auto share_of_gradients(const Count& count) {
  return [count](const RunTotals& run) { return share_text(count(run), run.gradients.total); };
}

void add_gradients(const Comparison& c, std::vector<Row>& rows) {
  if (c.gradients == 0) return;
  rows.push_back(fact("Gradients lost to zero", c,
                      share_of_gradients([](const RunTotals& run) { return run.lost; })));
  rows.push_back(part("gradients recorded as zero", c,
                      share_of_gradients([](const RunTotals& run) { return run.gradients.zero; })));
  // Each run is judged in its own format.
  if (c.own_format) return;
  rows.push_back(part("gradients flushed to zero", c, share_of_gradients([](const RunTotals& run) {
                        return run.gradients.classes.flushed_to_zero;
                      })));
  rows.push_back(part("gradients subnormal", c, share_of_gradients([](const RunTotals& run) {
                        return run.gradients.classes.subnormal;
                      })));
}

void add_not_finite(const Comparison& c, std::vector<Row>& rows) {
  rows.push_back(fact("NaN, infinite or overflow", c,
                      [](const RunTotals& run) { return count_text(run.not_finite_all); }));
  if (c.gradients == 0) return;
  rows.push_back(part("of these in gradients", c,
                      [](const RunTotals& run) { return count_text(run.not_finite); }));
}

void add_updates(const Comparison& c, std::vector<Row>& rows) {
  if (!c.updates) return;
  const auto& [a, b] = *c.updates;
  rows.push_back({{{"Weight updates lost, of all"},
                   {share_text(c.runs.a.lost_updates, a.pairs)},
                   {share_text(c.runs.b.lost_updates, b.pairs)}}});
  rows.push_back({{{"updates that are exactly zero"},
                   {share_text(a.zero, a.pairs)},
                   {share_text(b.zero, b.pairs)}}});
  rows.back().part = true;
}

Cell share_cell(const Interval& count, const Counts& counts) {
  const double key =
      counts.total == 0 ? 0 : static_cast<double>(count.high) / static_cast<double>(counts.total);
  return {share_text(count, counts.total), key,
          fmt::format("{} of {}", count_text(count), count_text(counts.total))};
}

/// Returns B's number of NaN, infinities and overflows minus A's. The cell's `more` has both.
Cell not_finite_cell(const ComparedTensor& t) {
  const Interval &a = t.not_finite.a, &b = t.not_finite.b;
  const bool exact = a.exact() && b.exact();
  const double more = static_cast<double>(b.high) - static_cast<double>(a.high);
  return {exact ? signed_text(static_cast<std::int64_t>(b.low) - static_cast<std::int64_t>(a.low))
                : count_text(b),
          more,
          fmt::format("A: {} ({}); B: {} ({})", count_text(a), share_text(a, t.counts.a.total),
                      count_text(b), share_text(b, t.counts.b.total))};
}

/// Returns a cell with text(value), or muted with `none` if there is no value.
template <typename T, typename Text>
Cell optional_cell(const std::optional<T>& value, const Text& text, std::string_view none) {
  if (!value) return {.text = std::string(none), .muted = true};
  return {text(*value), static_cast<double>(*value)};
}

Cell new_zeros_cell(const ComparedTensor& t) {
  if (!t.new_zeros) return {.text = "other size", .muted = true};
  return {count_text(*t.new_zeros), static_cast<double>(t.new_zeros->high)};
}

Cell equal_cell(const ComparedTensor& t) {
  if (!t.elements) return {.text = "not whole", .muted = true};
  return {share_text(t.elements->equal, t.elements->elements),
          static_cast<double>(t.elements->equal) / static_cast<double>(t.elements->elements)};
}

Row tensor_row(const ComparedTensor& t) {
  return {{{code(t.name)},
           not_finite_cell(t),
           share_cell(t.lost.a, t.counts.a),
           share_cell(t.lost.b, t.counts.b),
           new_zeros_cell(t),
           optional_cell(t.max_abs_shift, shift_text, "none"),
           optional_cell(t.median_shift, signed_text, "none"),
           share_cell(t.counts.a.classes.subnormal, t.counts.a),
           share_cell(t.counts.b.classes.subnormal, t.counts.b),
           optional_cell(
               t.largest_share_difference, [](double share) { return share_text(share); }, "none"),
           equal_cell(t)}};
}

std::string harmed_text(const Comparison& c) {
  const auto harmed = static_cast<std::uint64_t>(
      std::ranges::count_if(c.tensors, [](const ComparedTensor& t) { return t.harmed; }));
  if (harmed == 0) return "No tensor is harmed in B; those whose magnitudes differ most first";
  return fmt::format("{} of {} harmed in B, worst first", count_text(harmed),
                     plural(c.tensors.size(), "tensor"));
}

/// Returns both runs side by side, over the tensors and steps that both have. A row with Row::part
/// has details of the row before it.
Table facts_table(const Comparison& c) {
  Table out{.title = "Both runs", .headings = {"", "A", "B"}};
  add_gradients(c, out.rows);
  add_not_finite(c, out.rows);
  add_updates(c, out.rows);
  if (c.last_loss) {
    out.rows.push_back({{{fmt::format("Loss at step {}", c.last_loss->step)},
                         {loss_text(c.last_loss->a)},
                         {loss_text(c.last_loss->b)}}});
  }
  if (c.runs.a.steps + c.runs.b.steps != 0) {
    out.rows.push_back(fact("Skipped steps", c, skipped_text));
    out.rows.push_back(
        part("of recorded steps", c, [](const RunTotals& run) { return count_text(run.steps); }));
  }
  if (c.gradients != 0) out.rows.push_back(fact("Loss scale", c, scales_text));
  return out;
}

Table tensors_table(const Comparison& c) {
  Table out{
      .title = harmed_text(c),
      .note = lost_note(c),
      .headings = {"tensor", "NaN, inf, overflow: B - A", "lost to zero: A", "lost to zero: B",
                   "zero in B, not in A", "largest: B/A, 2^", "median: B/A, 2^", "subnormal: A",
                   "subnormal: B", "shift of shares", "equal elements"},
      .narrow = 7};
  out.all_by = "compare A B --json FILE";
  out.add_rows(c.tensors, tensor_row);
  return out;
}

}  // namespace

ComparisonAnswer comparison_answer(const Comparison& c) {
  ComparisonAnswer out;
  out.a = code(c.logs.a);
  out.b = code(c.logs.b);
  out.counted_for = counted_for_text(c);
  out.verdict = comparison_verdict(c);
  out.reasons = comparison_reasons(c);
  out.stored = stored_section(c);
  out.facts = facts_table(c);
  out.values = values_of(c);
  out.losses = parting_text(c);
  out.sums = order_section(c);
  if (c.order_asked) {
    out.reasons.insert(out.reasons.begin(), std::exchange(out.verdict, order_verdict(c)));
  }
  if (c.operations.a) out.operations.push_back(operations_section(*c.operations.a, "A"));
  if (c.operations.b) out.operations.push_back(operations_section(*c.operations.b, "B"));
  out.tensors = tensors_table(c);
  return out;
}

std::string tensor_facts(const ComparedTensor& t) {
  std::string out = fmt::format("{}; zeros: {} in A, {} in B.", plural(t.steps.size(), "step"),
                                count_text(t.counts.a.zero), count_text(t.counts.b.zero));
  if (t.max_abs.a && t.max_abs.b) {
    out += fmt::format(" Largest: {} in A, {} in B.", magnitude_text(*t.max_abs.a),
                       magnitude_text(*t.max_abs.b));
  }
  if (t.elements) {
    out += fmt::format(" Whole tensors, {}: {}.", plural(t.elements->elements, "element"),
                       changes_text(*t.elements));
    if (t.elements->largest_ulps) {
      out += fmt::format(" At most {:.4g} ulps apart.", *t.elements->largest_ulps);
    }
  }
  return out;
}

}  // namespace halfscope::reports::answer
