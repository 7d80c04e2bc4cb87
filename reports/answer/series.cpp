// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/series.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace halfscope::reports::answer {

using analyzers::underflow::BinadeCount;
using analyzers::underflow::TensorFindings;

namespace {

using BinadeSums = std::map<int, Interval>;

void add(BinadeSums& sums, const std::vector<BinadeCount>& binades) {
  for (const BinadeCount& binade : binades) sums[binade.exponent] += binade.count;
}

std::vector<BinadeCount> listed(const BinadeSums& sums) {
  std::vector<BinadeCount> out;
  out.reserve(sums.size());
  for (const auto& [exponent, count] : sums) out.push_back({exponent, count});
  return out;
}

/// Steps in equal runs, at most kMostColumns of them.
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
    columns.back().binades = listed(sums);
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
  out.binades = listed(binades);
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

bool is_scaled(log::Role role) { return is_gradient(role) || role == log::Role::loss; }

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
               [](const TensorFindings* tensor) { return tensor->counted; });
  return out;
}

std::vector<log::Role> roles_in(const analyzers::underflow::Analysis& analysis) {
  std::set<log::Role> roles;  // ordered as the enumeration is
  for (const TensorFindings& tensor : analysis.tensors()) roles.insert(tensor.role);
  return {roles.begin(), roles.end()};
}

}  // namespace halfscope::reports::answer
