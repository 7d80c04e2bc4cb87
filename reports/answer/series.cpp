// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/series.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "reports/answer/shares.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::BinadeCount;
using analyzers::underflow::TensorFindings;

namespace {

using BinadeSums = std::map<int, Interval>;

void add(BinadeSums& sums, const analyzers::underflow::BinadeCounts& binades) {
  for (const BinadeCount& binade : binades) sums[binade.exponent] += binade.count;
}

std::vector<BinadeCount> binades_of(const BinadeSums& sums) {
  std::vector<BinadeCount> out;
  out.reserve(sums.size());
  for (const auto& [exponent, count] : sums) out.push_back({exponent, count});
  return out;
}

/// Divides the steps into at most kMostColumns columns with equal numbers of steps.
std::vector<Column> columns_of(const std::map<std::int64_t, BinadeSums>& steps) {
  const std::size_t run = (steps.size() + kMostColumns - 1) / kMostColumns;
  std::vector<Column> columns;
  BinadeSums sums;
  std::size_t in_run = 0;
  for (const auto& [step, binades] : steps) {
    if (in_run == 0) {
      columns.push_back({step, step, {}});
      sums.clear();
    }
    columns.back().last_step = step;
    for (const auto& [exponent, count] : binades) sums[exponent] += count;
    columns.back().binades = binades_of(sums);
    in_run = (in_run + 1) % run;
  }
  return columns;
}

}  // namespace

Series sum(const Tensors& tensors) {
  Series out;
  out.tensors = tensors.size();
  BinadeSums binades;
  std::map<std::int64_t, BinadeSums> steps;
  for (const TensorFindings* tensor : tensors) {
    out.counts += tensor->counts;
    add(binades, tensor->binades);
    for (const analyzers::underflow::StepFindings& step : tensor->per_step) {
      add(steps[step.step], step.binades);
    }
  }
  out.binades = binades_of(binades);
  out.recorded_steps = steps.size();
  out.columns = columns_of(steps);
  return out;
}

std::vector<Classes> by_scale(const Tensors& tensors, const analyzers::underflow::Target& target) {
  std::vector<Classes> sums;
  for (const TensorFindings* tensor : tensors) {
    const std::vector<Classes> own = tensor->by_scale(target);
    sums.resize(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) sums[i] += own[i];
  }
  return sums;
}

Tensors all_tensors(const analyzers::underflow::Analysis& analysis) {
  Tensors out;
  for (const TensorFindings& tensor : analysis.tensors()) out.push_back(&tensor);
  return out;
}

Tensors of_log(const analyzers::underflow::LogFindings& log) {
  Tensors out;
  for (const TensorFindings& tensor : log.tensors) out.push_back(&tensor);
  return out;
}

Tensors of_role(const Tensors& tensors, log::Role role) {
  Tensors out;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(out),
               [&](const TensorFindings* tensor) { return tensor->role == role; });
  return out;
}

Tensors counted_of(const Tensors& tensors) {
  Tensors out;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(out),
               [](const TensorFindings* tensor) { return tensor->loss_scaled; });
  return out;
}

Classes classes_of(const analyzers::underflow::Analysis& analysis, const TensorFindings& tensor) {
  const bool as_counted = tensor.loss_scaled || analysis.loss_scale == 1;
  return as_counted ? tensor.counts.classes : tensor.classes_at(analysis.target, 0);
}

Tensors worst_first(const analyzers::underflow::Analysis& analysis) {
  struct Harm {
    int kind = 2;
    bool unscaled = false;
    double less_overflow = 0, less_zero = 0;
    auto operator<=>(const Harm&) const = default;
  };
  std::vector<std::pair<Harm, const TensorFindings*>> all;
  for (const TensorFindings* tensor : all_tensors(analysis)) {
    Harm& harm = all.emplace_back(Harm{.unscaled = !tensor->loss_scaled}, tensor).first;
    const bool empty = tensor->counts.total == 0 && !tensor->max_abs && !tensor->max_abs_at_least;
    if (empty) continue;  // a file may have a million empty tensors
    Classes classes = classes_of(analysis, *tensor);
    const Interval of = tensor->counts.finite_nonzero;
    harm.kind = nonfinite_values(*tensor).low != 0 ? 0 : classes.overflow.low != 0 ? 1 : 2;
    harm.less_overflow = -class_share(classes, &Classes::overflow, of).high;
    classes.flushed_to_zero = tensor->without_noise(classes.flushed_to_zero);
    harm.less_zero =
        -class_share(classes, &Classes::flushed_to_zero, tensor->without_noise(of)).high;
  }
  std::ranges::stable_sort(all, {}, [](const auto& each) { return each.first; });
  Tensors order;
  for (const auto& [harm, tensor] : all) order.push_back(tensor);
  return order;
}

std::vector<log::Role> roles_in(const analyzers::underflow::Analysis& analysis) {
  std::set<log::Role> roles;  // sorted as in the enumeration
  for (const TensorFindings& tensor : analysis.tensors()) roles.insert(tensor.role);
  return {roles.begin(), roles.end()};
}

bool is_counted(const analyzers::underflow::Analysis& analysis, log::Role role) {
  return std::ranges::any_of(analysis.tensors(), [role](const TensorFindings& tensor) {
    return tensor.role == role && tensor.loss_scaled;
  });
}

}  // namespace halfscope::reports::answer
