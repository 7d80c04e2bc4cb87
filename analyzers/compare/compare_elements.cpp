// SPDX-License-Identifier: Apache-2.0
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "analyzers/compare/compare.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/readers/tensors/open.hpp"
#include "halfscope/number/convert.hpp"

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

/// Returns the value of every encoding of an 8- or 16-bit dtype, from an array that is built once.
const std::vector<double>& values_of(Dtype dtype) {
  static std::array<std::once_flag, kAllDtypes.size()> made;
  static std::array<std::vector<double>, kAllDtypes.size()> values;
  const auto at = static_cast<std::size_t>(dtype);
  std::call_once(made[at], [&] {
    const Format format = format_of(dtype);
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << format.width; ++bits) {
      values[at].push_back(to_double(format, bits));
    }
  });
  return values[at];
}

/// Reads elements of a tensor as recorded, exactly, in binary64.
class Reader {
 public:
  explicit Reader(const TensorView& view)
      : view_(view),
        width_(format_of(view.dtype).width),
        narrow_(width_ <= 16 ? values_of(view.dtype).data() : nullptr) {}

  double operator[](std::size_t i) const {
    switch (width_) {
      case 8: return narrow_[load<std::uint8_t>(i)];
      case 16: return narrow_[load<std::uint16_t>(i)];
      case 32: return double{std::bit_cast<float>(load<std::uint32_t>(i))};
      default: return std::bit_cast<double>(load<std::uint64_t>(i));
    }
  }

 private:
  template <typename Bits>
  Bits load(std::size_t i) const {
    Bits bits;
    std::memcpy(&bits, view_.data + i * sizeof(Bits), sizeof(Bits));
    return bits;
  }

  TensorView view_;
  int width_;
  const double* narrow_;  ///< values by encoding; null for wider dtypes
};

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

/// A run's tensor: its values, their loss scale, and its blocks, null if it is not stored as codes.
struct StoredTensor {
  TensorView view;
  double scale;
  std::shared_ptr<const log::TensorBlocks> blocks;
};

BlockLoss loss_in(std::size_t block, const StoredTensor& own, const StoredTensor& other) {
  const Reader mine(own.view), others(other.view);
  const float factor = std::abs(own.blocks->factors[block]);
  const double largest = own.blocks->largest * factor;
  const double limit = double{own.blocks->clipped_above} * factor / own.scale;
  bool any = false, other_any = false, clipped = false;
  BlockLoss out{.blocks = 1};
  own.blocks->for_each_element(block, [&](std::uint64_t, std::uint64_t i) {
    const double recorded = mine[i], x = recorded / own.scale, y = others[i] / other.scale;
    any |= x != 0;
    other_any |= y != 0;
    clipped |= largest != 0 && std::abs(recorded) == largest && std::abs(y) > limit;
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    out.signal += y * y;
    out.noise += (y - x) * (y - x);
  });
  out.vanished = !any && other_any ? 1 : 0;
  out.clipped = clipped ? 1 : 0;
  return out;
}

/// Adds what a run's tensor lost by its storage. The tree of additions depends on the number of
/// blocks alone, so that sums have the same bits on any number of threads.
void add_loss(std::optional<BlockLoss>& to, const StoredTensor& own, const StoredTensor& other) {
  if (!own.blocks) return;
  using Range = tbb::blocked_range<std::size_t>;
  const auto part = [&](const Range& range, BlockLoss sum) {
    for (std::size_t i = range.begin(); i < range.end(); ++i) sum += loss_in(i, own, other);
    return sum;
  };
  const auto join = [](BlockLoss x, const BlockLoss& y) { return x += y; };
  if (!to) to.emplace().layout = *own.blocks;
  *to += tbb::parallel_deterministic_reduce(Range(0, own.blocks->factors.size(), 1024), BlockLoss(),
                                            part, join);
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
  add_loss(at.tensor->stored.a, a, b);
  add_loss(at.tensor->stored.b, b, a);
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

BlockLoss& BlockLoss::operator+=(const BlockLoss& other) {
  blocks += other.blocks;
  vanished += other.vanished;
  clipped += other.clipped;
  signal += other.signal;
  noise += other.noise;
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
