// SPDX-License-Identifier: Apache-2.0
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "analyzers/compare/compare.hpp"
#include "analyzers/compare/element_reader.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/readers/tensors/open.hpp"

namespace halfscope::analyzers::compare {

using frames::WholeStep;
using underflow::Analysis;

namespace {

/// The location of a whole tensor of B, which is opened when A's tensor is read.
struct Place {
  std::filesystem::path file;
  std::string name;
  double scale = 1.0;
};
/// Step, rank and name. A key has several places if a folder holds shards.
using Key = std::tuple<std::int64_t, int, std::string>;
using Places = std::map<Key, std::vector<Place>>;

/// Returns the tensor of that name. An NPY file holds one tensor, whatever its folder calls it.
std::shared_ptr<const log::NamedTensor> tensor_of(const log::TensorFile& file,
                                                  const std::string& name) {
  const auto tensor = file.tensor(name);
  const auto names = tensor ? std::vector<std::string>() : file.names();
  return names.size() == 1 ? file.tensor(names.front()) : tensor;
}

/// Returns true if this rank's tensor is compared: other ranks repeat a replicated tensor.
bool is_taken(const WholeStep& step, log::Role role) {
  return step.rank == 0 || step.is_sharded(role);
}

Places places_of(const readers::Log& log, const frames::Selection& selection, frames::Notes& notes,
                 const frames::Progress& progress) {
  Places places;
  const auto visit = [&](const WholeStep& step) {
    for (const std::string& name : step.tensors->names()) {
      const log::Role role = step.role_of(selection, name);
      if (!frames::selects(selection, name) || !is_taken(step, role)) continue;
      places[{step.step, step.rank, meeting_name(role, name)}].push_back(
          {step.file_of ? step.file_of(name) : step.file, name, step.scale_of(selection, name)});
    }
  };
  readers::for_each_whole_step(log, selection, visit, notes, progress);
  return places;
}

/// Returns the format whose subnormals the values may be: computed or stored, the narrower range.
Format own_format(const underflow::TensorFindings& tensor) {
  if (tensor.suspected_fp16) return kBinary16;
  const Dtype source = tensor.source_dtype.value_or(Dtype::f32);  // whole tensors have one
  const Format stored = format_of(source);
  const Format computed = format_of(tensor.computed_dtype.value_or(source));
  return computed.emin() > stored.emin() ? computed : stored;
}

/// One run's tensor of a compared pair.
struct SideOfElements {
  Reader values;
  double scale;
  double smallest_normal;  ///< in the format that it was computed in

  bool is_subnormal(double recorded) const {
    return recorded != 0 && std::abs(recorded) < smallest_normal;
  }
};

void keep_larger(std::optional<double>& largest, double value) {
  largest = std::max(largest.value_or(value), value);
}

/// Returns the target's unit in the last place at x, also for subnormals and exponents above emax.
double ulp(Format target, double x) {
  const int exponent = x == 0 ? target.emin() : std::max(std::ilogb(x), target.emin());
  return std::ldexp(1.0, exponent - (target.precision - 1));
}

void compare_finite(double a, double b, double scale_b, Format target, ElementChanges& to) {
  const double change = std::abs(b - a);
  to.became_zero += a != 0 && b == 0 ? 1 : 0;
  to.became_nonzero += a == 0 && b != 0 ? 1 : 0;
  if (a != 0) keep_larger(to.largest_relative_error, change / std::abs(a));
  keep_larger(to.largest_ulps, change * scale_b / ulp(target, a * scale_b));
}

void compare_element(const SideOfElements& side_a, const SideOfElements& side_b, std::size_t i,
                     Format target, ElementChanges& to) {
  const double recorded_a = side_a.values[i], recorded_b = side_b.values[i];
  const double a = recorded_a / side_a.scale, b = recorded_b / side_b.scale;
  const bool same = a == b && std::signbit(a) == std::signbit(b);
  to.new_zeros += b == 0 && a != 0 ? 1 : 0;
  to.equal += same || (std::isnan(a) && std::isnan(b)) ? 1 : 0;
  if (!std::isfinite(a)) {
    to.became_finite += std::isfinite(b) ? 1 : 0;
    return;
  }
  to.became_infinite += std::isinf(b) ? 1 : 0;
  to.became_nan += std::isnan(b) ? 1 : 0;
  if (!std::isfinite(b)) return;
  const bool was_normal = a != 0 && !side_a.is_subnormal(recorded_a);
  to.became_subnormal += was_normal && side_b.is_subnormal(recorded_b) ? 1 : 0;
  compare_finite(a, b, side_b.scale, target, to);
}

/// Compares all elements in parallel. Counts and extremes do not depend on the partition. Reports
/// progress after each slice.
ElementChanges compare_values(const SideOfElements& a, const SideOfElements& b, std::size_t count,
                              Format target, const frames::ProgressCallback& tell) {
  using Range = tbb::blocked_range<std::size_t>;
  constexpr std::size_t kGrain = std::size_t{1} << 16, kSlice = std::size_t{1} << 22;
  const auto part = [&](const Range& range, ElementChanges sum) {
    for (std::size_t i = range.begin(); i < range.end(); ++i) {
      compare_element(a, b, i, target, sum);
    }
    sum.elements += range.size();
    return sum;
  };
  const auto join = [](ElementChanges x, const ElementChanges& y) { return x += y; };
  ElementChanges all;
  for (std::size_t first = 0; first < count; first += kSlice) {
    const std::size_t end = std::min(first + kSlice, count);
    all += tbb::parallel_reduce(Range(first, end, kGrain), ElementChanges(), part, join);
    if (tell) tell(static_cast<double>(end) / static_cast<double>(count));
  }
  return all;
}

/// A tensor of the comparison, and the formats of its values in either run.
struct MatchedTensor {
  ComparedTensor* tensor;
  Format own_a, own_b;
  std::map<std::int64_t, ElementChanges> at;  ///< by step
};

std::map<std::string, MatchedTensor> meetings(Comparison& c, const underflow::LogFindings& a,
                                              const underflow::LogFindings& b) {
  std::map<std::string, MatchedTensor> out;
  for (ComparedTensor& t : c.tensors) {
    out.emplace(
        t.name,
        MatchedTensor{&t, own_format(a.tensors[t.index.a]), own_format(b.tensors[t.index.b]), {}});
  }
  return out;
}

double smallest_normal(Format f) { return std::ldexp(1.0, f.emin()); }

void compare_pair(const StoredTensor& a, const StoredTensor& b, std::int64_t step,
                  MatchedTensor& at, Format target, const frames::ProgressCallback& tell) {
  if (a.view.count != b.view.count) return;  // the totals show the different sizes
  const SideOfElements side_a{Reader(a.view), a.scale, smallest_normal(at.own_a)};
  const SideOfElements side_b{Reader(b.view), b.scale, smallest_normal(at.own_b)};
  ElementChanges found = compare_values(side_a, side_b, a.view.count, target, tell);
  found.exact = exact_log2(a.scale) && exact_log2(b.scale);
  at.at[step] += found;
  add_conversion(at.tensor->conversion, a, b);
}

void finish(const MatchedTensor& meeting) {
  ComparedTensor& tensor = *meeting.tensor;
  for (const auto& [step, changes] : meeting.at) {
    if (!tensor.elements) tensor.elements.emplace();
    *tensor.elements += changes;
    tensor.elements->steps.push_back(step);
    for (StepZeros& zeros : tensor.zeros_at) {
      if (zeros.step == step && zeros.total == changes.elements) {
        zeros.new_zeros = changes.new_zeros;
        zeros.whole = true;
      }
    }
  }
}

}  // namespace

ElementChanges& ElementChanges::operator+=(const ElementChanges& other) {
  exact = exact && other.exact;
  elements += other.elements;
  equal += other.equal;
  became_zero += other.became_zero;
  became_nonzero += other.became_nonzero;
  became_subnormal += other.became_subnormal;
  became_infinite += other.became_infinite;
  became_nan += other.became_nan;
  became_finite += other.became_finite;
  new_zeros += other.new_zeros;
  if (other.largest_relative_error) {
    keep_larger(largest_relative_error, *other.largest_relative_error);
  }
  if (other.largest_ulps) keep_larger(largest_ulps, *other.largest_ulps);
  return *this;
}

void add_elements(Comparison& comparison, const underflow::LogFindings& a,
                  const underflow::LogFindings& b, const Both<frames::Selection>& selections,
                  const frames::Progress& progress, const readers::Logs& opened) {
  const readers::Log& log_b = opened.at(b.source);
  const Places places = places_of(log_b, selections.b, comparison.notes, {});
  std::optional<OrderJudge> orders;
  if (comparison.order_asked) orders.emplace(*comparison.order_asked);
  if (places.empty() && !orders) return;
  auto meeting = meetings(comparison, a, b);
  std::map<Key, std::size_t> turn;  // number of shards of B already read
  std::map<std::filesystem::path, std::unique_ptr<log::TensorFile>> open;
  const auto visit = [&](const WholeStep& step) {
    open.clear();
    double done = 0;
    for (const std::string& name : step.tensors->names()) {
      const log::Role role = step.role_of(selections.a, name);
      const std::string met = meeting_name(role, name);
      const Key key{step.step, step.rank, met};
      const auto at = meeting.find(met);
      const auto found = places.find(key);
      if (at == meeting.end() || found == places.end()) continue;
      if (!frames::selects(selections.a, name) || !is_taken(step, role)) continue;
      const std::size_t shard = turn[key]++;
      if (shard >= found->second.size()) continue;
      const Place& place = found->second[shard];
      auto& file = open[place.file];
      if (!file) {
        file =
            readers::tensors::open_tensor_file(log_b.opened().at(place.file), selections.b.read_as);
      }
      const auto of_a = step.tensors->tensor(name), of_b = tensor_of(*file, place.name);
      if (!of_a || !of_b) continue;
      const auto bytes = static_cast<double>(of_a->view.bytes());
      const auto tell = [&](double part) {
        if (step.tell) step.tell((done + part * bytes) / static_cast<double>(step.bytes));
      };
      const double scale_a = step.scale_of(selections.a, name);
      compare_pair({of_a->view, scale_a, step.tensors->blocks(name)},
                   {of_b->view, place.scale, file->blocks(of_b->name)}, step.step, at->second,
                   comparison.target.format, tell);
      if (orders) orders->take(step, met, {*of_a, scale_a}, {*of_b, place.scale});
      done += bytes;
    }
  };
  readers::for_each_whole_step(opened.at(a.source), selections.a, visit, comparison.notes,
                               progress);
  for (const auto& [name, at] : meeting) finish(at);
  if (orders) {
    comparison.orders = std::move(*orders).finish(a.name + " and " + b.name);
    for (const ComparedOrder& one : comparison.orders) {
      meeting.at(one.name).tensor->sums_above = one.verdict.above;
    }
  }
  sum_up(comparison, a, b);
}

}  // namespace halfscope::analyzers::compare
