// SPDX-License-Identifier: Apache-2.0
#include "analyzers/compare/compare_order.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/table/boundary.hpp"

namespace halfscope::analyzers::compare {

using log::printable;
using reduction::OrderVerdict;
using reduction::Verdict;

namespace {

/// Returns the values in binary32, the widest format of sums. Throws log::BadInput if they exceed
/// it.
std::vector<float> values_of(const log::NamedTensor& tensor, double times) {
  std::vector<float> values;
  values.reserve(tensor.view.count);
  for (const double x : frames::elements(tensor.view, 0, tensor.view.count)) {
    const auto value = static_cast<float>(x * times);
    if (std::isfinite(x) && !std::isfinite(value)) {
      throw log::BadInput(fmt::format(
          "{}: holds {}, which FP32 does not hold; --sums judges sums in FP32 and narrower formats",
          printable(tensor.name), x));
    }
    values.push_back(value);
  }
  return values;
}

Verdict worse(Verdict a, Verdict b) {
  if (a == Verdict::above || b == Verdict::above) return Verdict::above;
  return a == Verdict::within ? b : a;
}

void add(OrderVerdict& to, const OrderVerdict& more) {
  to.verdict = worse(to.verdict, more.verdict);
  to.elements += more.elements;
  to.within += more.within;
  to.above += more.above;
  to.between += more.between;
  to.nonfinite += more.nonfinite;
  to.magnitudes_missing |= more.magnitudes_missing;
  to.beyond_random += more.beyond_random;
  to.unusable += more.unusable;
}

}  // namespace

void OrderJudge::take(const frames::WholeStep& step, const std::string& name, const Scaled& a,
                      const Scaled& b) {
  const std::size_t count = a.tensor.view.count;
  if (count != b.tensor.view.count || a.tensor.name == asked_.magnitudes) return;
  std::vector<float> magnitudes;
  if (!asked_.magnitudes.empty()) {
    const auto tensor = step.tensors->tensor(asked_.magnitudes);
    if (tensor && tensor->view.count == count) magnitudes = values_of(*tensor, 1);
  }
  magnitudes_fit_ |= !magnitudes.empty();
  ComparedOrder& found = found_[name];
  found.name = name;
  if (found.steps.empty() || found.steps.back() != step.step) found.steps.push_back(step.step);
  const double ratio = a.scale / b.scale;
  if (ratio != 1 && !exact_log2(ratio)) {
    throw log::BadInput(fmt::format(
        "{}: at step {} it carries the loss scale {} in A and {} in B; --sums compares values as "
        "they were added up, so record both at the same scale, or at one that is a power of two "
        "times the other",
        printable(name), step.step, a.scale, b.scale));
  }
  const std::vector<float> values_a = values_of(a.tensor, 1), values_b = values_of(b.tensor, ratio);
  const OrderVerdict verdict = judge_orders(limit_, {values_a, format_of(a.tensor.view.dtype)},
                                            {values_b, format_of(b.tensor.view.dtype)}, magnitudes);
  add(found.verdict, verdict);
  if (verdict.worst_ratio > found.verdict.worst_ratio) {
    found.verdict.worst_ratio = verdict.worst_ratio;
    found.verdict.worst = verdict.worst;
    found.worst_step = step.step;
  }
}

std::vector<ComparedOrder> OrderJudge::finish(const std::string& logs) && {
  if (found_.empty()) {
    throw log::BadInput(printable(logs) +
                        ": no tensor is in full in both; --sums compares elements: record with "
                        "sample_every=N, or compare tensor files");
  }
  if (!asked_.magnitudes.empty() && !magnitudes_fit_) {
    throw log::BadInput(fmt::format(
        "{}: --sums: the first has no tensor '{}' with as many elements as one that is compared; "
        "it holds the sums of the addends' magnitudes, an element each",
        printable(logs), printable(asked_.magnitudes)));
  }
  std::vector<ComparedOrder> all;
  for (auto& [name, found] : found_) all.push_back(std::move(found));
  return all;
}

}  // namespace halfscope::analyzers::compare
