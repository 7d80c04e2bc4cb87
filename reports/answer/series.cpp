// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "reports/answer/text.hpp"

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

double share(std::uint64_t part, std::uint64_t rest) {
  return part == 0 ? 0 : static_cast<double>(part) / static_cast<double>(part + rest);
}

/// Returns a - b, or 0 if b is larger.
std::uint64_t less(std::uint64_t a, std::uint64_t b) { return a - std::min(a, b); }

template <typename Predicate>
Tensors filtered(const Tensors& tensors, const Predicate& is_wanted) {
  Tensors out;
  std::ranges::copy_if(tensors, std::back_inserter(out), is_wanted);
  return out;
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
  return filtered(tensors, [&](const TensorFindings* tensor) { return tensor->role == role; });
}

Tensors counted_of(const Tensors& tensors) {
  return filtered(tensors, &TensorFindings::loss_scaled);
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

std::string log_prefix(const analyzers::underflow::Analysis& analysis, const std::string& log) {
  return analysis.logs.size() > 1 ? code(log) + ": " : "";
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

Bounds class_share(const Classes& classes, Interval Classes::*part, const Interval& of) {
  Interval others;
  for (Interval Classes::*each :
       {&Classes::flushed_to_zero, &Classes::subnormal, &Classes::normal, &Classes::overflow}) {
    if (each != part) others += classes.*each;
  }
  const Interval& in = classes.*part;
  const std::uint64_t fewest = std::max(others.low, less(of.low, in.high));
  const std::uint64_t most = std::min(others.high, less(of.high, in.low));
  return {share(in.low, most), share(in.high, fewest)};
}

std::string class_share_text(const Classes& classes, Interval Classes::*part, const Interval& of) {
  const Interval& count = classes.*part;
  if (of.exact()) return share_text(count, of.low);
  const Bounds share = class_share(classes, part, of);
  return share_range_text(share.low, share.high);
}

std::string largest_text(const analyzers::underflow::TensorFindings& tensor) {
  if (!tensor.max_abs && !tensor.max_abs_at_least) return "none";
  if (!tensor.max_abs) return "at least " + magnitude_text(*tensor.max_abs_at_least);
  const std::string most = magnitude_text(*tensor.max_abs);
  if (!tensor.max_abs_at_least) return most;
  const std::string least = magnitude_text(*tensor.max_abs_at_least);
  return least == most ? most : fmt::format("{:.3g} to {}", *tensor.max_abs_at_least, most);
}

Interval nonfinite_values(const analyzers::underflow::TensorFindings& tensor) {
  const std::uint64_t surely = tensor.counts.nan.low + tensor.counts.inf.low;
  std::uint64_t perhaps = 0;
  for (const analyzers::underflow::ScaledTable& scaled : tensor.tables) {
    for (const Span& span : scaled.table.spans()) perhaps += span.last ? 0 : span.count;
  }
  return {surely, surely + perhaps};
}

Bounds flushed_share(const analyzers::underflow::Counts& counts) {
  return class_share(counts.classes, &Classes::flushed_to_zero, counts.finite_nonzero);
}

}  // namespace halfscope::reports::answer
