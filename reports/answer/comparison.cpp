// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reports/answer/compare_tables.hpp"
#include "reports/answer/compare_words.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/operation_words.hpp"
#include "reports/answer/order_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::compare::ComparedTensor;
using analyzers::compare::Comparison;
using analyzers::compare::ElementChanges;

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

}  // namespace

ComparisonAnswer comparison_answer(const Comparison& c) {
  ComparisonAnswer out;
  out.a = code(c.logs.a);
  out.b = code(c.logs.b);
  out.counted_for = counted_for_text(c);
  out.verdict = comparison_verdict(c);
  out.reasons = comparison_reasons(c);
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
