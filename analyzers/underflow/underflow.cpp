// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/underflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <tuple>

#include "analyzers/readers/kinds.hpp"
#include "analyzers/underflow/in_bfloat16.hpp"
#include "analyzers/underflow/nothing_found.hpp"
#include "analyzers/underflow/provenance.hpp"

namespace halfscope::analyzers::underflow {

using frames::Frame;
using frames::Selection;
using frames::Visitor;

namespace {

using log::printable;

/// scale = significand * 2^exponent, significand in [1, 2).
std::pair<double, int> normalised(double scale) {
  int exponent = 0;
  const double half = std::frexp(scale, &exponent);
  return {2 * half, exponent - 1};
}

/// The first and the last binade that values may lie in. A bucket with zero has no lowest one: it
/// is followed down to where its smallest values matter to nobody.
std::pair<int, int> binades_of(const BoundedTable& table) {
  constexpr int kLowest = -40;
  int first = std::numeric_limits<int>::max(), last = std::numeric_limits<int>::min();
  const auto reach = [&](int from, int to) {
    first = std::min(first, from);
    last = std::max(last, to);
  };
  const auto see = [&](const auto& from, const auto& to, const Interval&) {
    if (!from && !to) return;
    const int high = to ? to->exponent : from->exponent;
    const int low = from ? from->exponent : std::min(kLowest, high);
    // Of a bucket beside zero, too, which begins at the least number there is.
    reach(low == high ? low : std::max(low, std::min(kLowest, high)), high);
  };
  table.for_each_part(see);
  return {first, last};
}

/// Unscaled binades of a table whose values carry `scale` in [1, 2).
void add_binades(std::map<int, Interval>& sum, const BoundedTable& table, double scale) {
  if (table.is_exact() && scale == 1.0) {
    for (const BinadeTable::Row& row : table.exact().rows()) sum[row.exponent] += row.count();
    return;
  }
  const auto [first, last] = binades_of(table);
  if (first > last) return;
  std::vector<Magnitude> starts;
  for (int e = first - 1; e <= last + 1; ++e) starts.push_back(unscaled_binade(e, scale));
  const std::vector<Interval> from = table.at_or_above(starts);
  for (std::size_t i = 0; i + 1 < from.size(); ++i) {
    const Interval count = without(from[i], from[i + 1]);
    if (count.high != 0) sum[first - 1 + static_cast<int>(i)] += count;
  }
}

std::vector<BinadeCount> to_vector(const std::map<int, Interval>& sum) {
  std::vector<BinadeCount> binades;
  for (const auto& [exponent, count] : sum) binades.push_back({exponent, count});
  return binades;
}

/// All but the classes.
Counts counts_of(const BoundedTable& table) {
  return {
      table.total(),          table.zero(), table.nan(), table.inf(), table.finite_nonzero(), {},
      table.nonfinite_known()};
}

/// Whether the table has the cuts that unscaling by this scale asks for.
bool unscales_exactly(const BoundedTable& bounded, double scale) {
  const BinadeTable& table = bounded.exact();
  const std::uint64_t fraction = unscaled_binade(0, scale).fraction;
  return fraction == 0 || std::binary_search(table.cuts().begin(), table.cuts().end(), fraction);
}

/// A frame's table after taking out the power of two of its scale, and what is left of the scale.
struct Normalised {
  double scale;
  std::optional<BoundedTable> moved;  ///< empty where there is nothing to take out
  const BoundedTable& table;

  explicit Normalised(const Frame& frame) : Normalised(frame, normalised(frame.scale)) {}
  Normalised(const Normalised&) = delete;

 private:
  Normalised(const Frame& frame, const std::pair<double, int>& parts)
      : scale(parts.first),
        table(parts.second == 0
                  ? frame.table
                  : moved.emplace(frame.table.scaled_by_power_of_two(-parts.second))) {}
};

StepFindings find_step(const Frame& frame, const Normalised& normal, const Target& target,
                       double loss_scale) {
  StepFindings step;
  step.step = frame.step;
  step.scale = frame.scale;
  step.loss_scale = loss_scale;
  step.counts = counts_of(frame.table);
  const StepClasses found = classes_of(frame, target, loss_scale);
  step.counts.classes = found.classes;
  step.overflow_at_1 = found.overflow_at_1;
  std::map<int, Interval> binades;
  add_binades(binades, normal.table, normal.scale);
  step.binades = to_vector(binades);
  step.moments = frame.moments;
  step.fits_as_is = underflow::fits_as_is(frame.table);
  step.largest = frame.table.largest();
  if (step.largest) step.max_abs = to_double(*step.largest) / frame.scale;
  const auto least = frame.table.largest_at_least();
  if (least && least != step.largest) step.max_abs_at_least = to_double(*least) / frame.scale;
  return step;
}

void add_table(TensorFindings& tensor, const Normalised& normal) {
  for (ScaledTable& sum : tensor.tables) {
    if (sum.scale == normal.scale) {
      sum.table.merge(normal.table);
      return;
    }
  }
  tensor.tables.push_back({normal.scale, normal.table});
}

/// Collects the frames of one tensor.
struct Collector {
  TensorFindings tensor;
  std::int64_t last_step = 0;
  Provenance provenance;

  Collector(std::string log, const Frame& first) {
    tensor.log = std::move(log);
    tensor.name = first.name;
    tensor.role = first.role;
    tensor.role_source = first.role_source;
    tensor.loss_scaled = first.loss_scaled;
  }

  void add(const Frame& frame, const Target& target, double loss_scale) {
    const bool first = tensor.per_step.empty();
    if (first || frame.step >= last_step) {
      tensor.shape = frame.shape;
      last_step = frame.step;
    }
    provenance.add(frame, target.format);
    tensor.unscale_exact = tensor.unscale_exact && unscales_exactly(frame.table, frame.scale);
    const Normalised normal(frame);
    add_table(tensor, normal);
    tensor.per_step.push_back(find_step(frame, normal, target, loss_scale));
  }
};

/// Of tables that carry scales. An empty magnitude of a table with values is one without a bound.
class Extremes {
 public:
  void add(const BoundedTable& table, double scale) {
    if (table.finite_nonzero().high == 0) return;
    const auto unscaled = [&](const auto& m) {
      return m ? std::optional(to_double(*m) / scale) : std::nullopt;
    };
    keep(max_abs_, unscaled(table.largest()), kInfinity, larger_of);
    keep(max_abs_at_least_, unscaled(table.largest_at_least()), 0, larger_of);
    keep(min_abs_, unscaled(table.smallest()), 0, smaller_of);
    keep(min_abs_at_most_, unscaled(table.smallest_at_most()), kInfinity, smaller_of);
  }

  void tell(TensorFindings& t) const {
    if (!max_abs_) return;
    if (std::isfinite(*max_abs_)) t.max_abs = max_abs_;
    t.min_abs_nonzero = min_abs_;
    if (max_abs_at_least_ != max_abs_) t.max_abs_at_least = max_abs_at_least_;
    if (min_abs_at_most_ != min_abs_) t.min_abs_at_most = min_abs_at_most_;
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  using Chooses = double (*)(double, double);
  static double larger_of(double a, double b) { return std::max(a, b); }
  static double smaller_of(double a, double b) { return std::min(a, b); }
  static void keep(std::optional<double>& kept, std::optional<double> x, double unbounded,
                   Chooses choose) {
    const double value = x.value_or(unbounded);
    kept = choose(kept.value_or(value), value);
  }

  std::optional<double> max_abs_, max_abs_at_least_, min_abs_, min_abs_at_most_;
};

void set_extremes(TensorFindings& t) {
  Extremes extremes;
  for (const ScaledTable& sum : t.tables) extremes.add(sum.table, sum.scale);
  extremes.tell(t);
}

TensorFindings finish(Collector&& c, const Target& target) {
  TensorFindings& t = c.tensor;
  std::stable_sort(t.per_step.begin(), t.per_step.end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
  std::map<int, Interval> binades;
  for (const StepFindings& step : t.per_step) {
    t.counts += step.counts;
    for (const BinadeCount& b : step.binades) binades[b.exponent] += b.count;
  }
  t.binades = to_vector(binades);
  set_extremes(t);
  c.provenance.tell(t, target.format);
  return std::move(t);
}

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  total += other.total;
  zero += other.zero;
  nan += other.nan;
  inf += other.inf;
  finite_nonzero += other.finite_nonzero;
  classes += other.classes;
  nonfinite_known = nonfinite_known && other.nonfinite_known;
  return *this;
}

std::size_t TensorRange::size() const {
  std::size_t n = 0;
  for (const LogFindings& log : *logs_) n += log.tensors.size();
  return n;
}

const TensorFindings& TensorRange::operator[](std::size_t index) const {
  auto log = logs_->begin();
  for (; index >= log->tensors.size(); ++log) index -= log->tensors.size();
  return log->tensors[index];
}

std::size_t TensorRange::index_of(const TensorFindings& tensor) const {
  std::size_t before = 0;
  for (const LogFindings& log : *logs_) {
    const TensorFindings* const first = log.tensors.data();
    const bool in_log =
        !std::less<>()(&tensor, first) && std::less<>()(&tensor, first + log.tensors.size());
    if (in_log) return before + static_cast<std::size_t>(&tensor - first);
    before += log.tensors.size();
  }
  return before;
}

std::vector<std::string> Analysis::names() const {
  std::vector<std::string> names;
  for (const LogFindings& log : logs) names.push_back(log.name);
  return names;
}

bool Analysis::has_run_log() const {
  return std::ranges::any_of(logs, [](const LogFindings& log) { return log.manifest.has_value(); });
}

bool TensorFindings::computed_in_fp16() const {
  return suspected_fp16 || computed_dtype == Dtype::f16 || source_dtype == Dtype::f16;
}

bool fits_as_is(const BoundedTable& table) {
  return table.is_exact() && table.exact().fits_as_is(kBinary16);
}

Boundaries Target::boundaries(double loss_scale, double recorded_scale) const {
  return halfscope::boundaries(format, loss_scale, recorded_scale, subnormals);
}

std::vector<Classes> TensorFindings::by_scale(const Target& target) const {
  std::vector<Classes> classes(kLastLog2Scale - kFirstLog2Scale + 1);
  for (const ScaledTable& t : tables) {
    const Boundaries limits = target.boundaries(1.0, t.scale);
    for (int k = kFirstLog2Scale; k <= kLastLog2Scale; ++k) {
      classes[static_cast<std::size_t>(k - kFirstLog2Scale)] +=
          classify(t.table, before_scaling(limits, k));
    }
  }
  return classes;
}

Classes TensorFindings::classes_at(const Target& target, int k) const {
  Classes sum;
  for (const ScaledTable& t : tables) {
    sum += classify(t.table, before_scaling(target.boundaries(1.0, t.scale), k));
  }
  return sum;
}

namespace {

/// What a log tells beside its frames, into the last of `runs`, which begins with the log itself.
Visitor notes_into(std::vector<LogFindings>& runs, const Visitor& companion) {
  Visitor visit;
  visit.peak = [&](const frames::StepPeak& peak) {
    if (companion.peak) companion.peak(peak);
    runs.back().peaks.push_back(peak);
  };
  visit.scalars = [&](const log::StepScalars& scalars) {
    if (companion.scalars) companion.scalars(scalars);
    runs.back().scalars.push_back(scalars);
  };
  visit.manifest = [&](const log::Manifest& manifest) {
    if (companion.manifest) companion.manifest(manifest);
    runs.back().manifest = manifest;
  };
  visit.other_rank = companion.other_rank;
  visit.kind = [&](const frames::LogKind& kind) { runs.back().kinds.push_back(kind); };
  visit.skipped = [&](const frames::SkippedSteps& steps) { runs.back().skips.push_back(steps); };
  visit.run = [&, first = true](const std::string& name) mutable {
    if (companion.run) companion.run(name);
    if (first) runs.pop_back();
    first = false;
    runs.emplace_back().name = name;
  };
  return visit;
}

/// Whether another tool's log tells something beside tensors.
bool tells_something(const LogFindings& run) {
  return !run.kinds.empty() && !(run.peaks.empty() && run.scalars.empty() && run.skips.empty());
}

/// The findings of one log: of several runs in it, one each.
std::vector<LogFindings> analyze_log(const readers::Log& opened, const Selection& selection,
                                     Analysis& analysis, const frames::Progress& progress,
                                     const Visitor& companion) {
  const std::string log = opened.path().string();
  std::vector<LogFindings> runs(1);
  runs.front().name = log;
  std::vector<std::unique_ptr<Collector>> collectors;  // let go one by one: may be a million
  std::map<std::string, std::size_t> index;
  Visitor visit = notes_into(runs, companion);
  visit.frame = [&](Frame&& frame) {
    const auto [at, is_new] = index.try_emplace(frame.name, collectors.size());
    if (is_new) collectors.push_back(std::make_unique<Collector>(log, frame));
    collectors[at->second]->add(frame, analysis.target,
                                selection.at_run_scale ? frame.run_scale : analysis.loss_scale);
    if (companion.frame) companion.frame(std::move(frame));
  };
  readers::for_each_frame(opened, selection, visit, analysis.notes, progress);
  // Of another tool's log scalars alone are something; a run log's have a command of their own.
  const bool something = !selection.tensor_glob && std::ranges::any_of(runs, tells_something);
  const bool scalars = selection.scalars_suffice && !runs.back().scalars.empty();
  if (collectors.empty() && !something && !scalars) refuse_empty(opened, selection);
  std::ranges::stable_sort(collectors, {},
                           [](const auto& collector) { return collector->tensor.role; });
  runs.back().tensors.reserve(collectors.size());
  for (std::unique_ptr<Collector>& collector : collectors) {
    runs.back().tensors.push_back(finish(std::move(*collector), analysis.target));
    collector.reset();
  }
  for (LogFindings& run : runs) run.clipped = is_clipped(run);
  return runs;
}

}  // namespace

Analysis analyze(const std::vector<std::filesystem::path>& logs, const Target& target,
                 const Selection& selection, const frames::Progress& progress,
                 const Companion& companion, const readers::Logs& opened) {
  if (selection.recorded_scale && !frames::usable_scale(*selection.recorded_scale)) {
    throw std::invalid_argument(
        fmt::format("recorded_scale: found {}, expected a positive normal binary32 number",
                    *selection.recorded_scale));
  }
  Analysis analysis;
  analysis.target = target;
  analysis.loss_scale = selection.loss_scale;
  Selection wanted = selection;
  wanted.target = target.format;
  for (const std::filesystem::path& log : logs) {
    const readers::Log& at = opened.at(log);
    const Visitor beside = companion ? companion(at.path().string()) : Visitor();
    std::ranges::move(analyze_log(at, wanted, analysis, progress, beside),
                      std::back_inserter(analysis.logs));
  }
  note_unmatched_roles(selection, analysis);
  return analysis;
}

}  // namespace halfscope::analyzers::underflow
