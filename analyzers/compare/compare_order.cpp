// SPDX-License-Identifier: Apache-2.0
#include "analyzers/compare/compare_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::compare {

using log::printable;
using reduction::OrderVerdict;
using reduction::Verdict;

namespace {

std::vector<float> values_of(const TensorView& view) {
  const std::vector<double> values = frames::elements(view, 0, view.count);
  return {values.begin(), values.end()};
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
  if (more.worst_ratio > to.worst_ratio) {
    to.worst_ratio = more.worst_ratio;
    to.worst = more.worst;
  }
}

}  // namespace

void OrderJudge::take(const frames::WholeStep& step, const std::string& name,
                      const log::NamedTensor& a, const log::NamedTensor& b) {
  if (a.view.count != b.view.count || a.name == asked_.magnitudes) return;
  std::vector<float> magnitudes;
  if (!asked_.magnitudes.empty()) {
    const auto tensor = step.tensors->tensor(asked_.magnitudes);
    if (tensor && tensor->view.count == a.view.count) magnitudes = values_of(tensor->view);
  }
  magnitudes_fit_ |= !magnitudes.empty();
  ComparedOrder& found = found_[name];
  found.name = name;
  if (found.steps.empty() || found.steps.back() != step.step) found.steps.push_back(step.step);
  add(found.verdict,
      reduction::judge_orders(asked_.sums, values_of(a.view), values_of(b.view), magnitudes));
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
