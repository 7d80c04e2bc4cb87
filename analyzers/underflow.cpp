// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include "analyzers/provenance.hpp"
#include "analyzers/readers/kinds.hpp"

namespace halfscope::analyzers {
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
  for (int e = first - 1; e <= last; ++e) {
    const Interval count = without(table.at_or_above(unscaled_binade(e, scale)),
                                   table.at_or_above(unscaled_binade(e + 1, scale)));
    if (count.high != 0) sum[e] += count;
  }
}

std::vector<BinadeCount> to_vector(const std::map<int, Interval>& sum) {
  std::vector<BinadeCount> binades;
  for (const auto& [exponent, count] : sum) binades.push_back({exponent, count});
  return binades;
}

Counts counts_of(const BoundedTable& table, const Boundaries& limits) {
  return {table.total(),
          table.zero(),
          table.nan(),
          table.inf(),
          table.finite_nonzero(),
          classify(table, limits),
          table.nonfinite_known()};
}

/// Whether the table has the cuts that unscaling by this scale asks for.
bool unscales_exactly(const BoundedTable& bounded, double scale) {
  const BinadeTable& table = bounded.exact();
  const std::uint64_t fraction = unscaled_binade(0, scale).fraction;
  return fraction == 0 || std::binary_search(table.cuts().begin(), table.cuts().end(), fraction);
}

StepFindings find_step(const Frame& frame, const Target& target, double loss_scale) {
  StepFindings step;
  step.step = frame.step;
  step.scale = frame.scale;
  step.loss_scale = loss_scale;
  step.counts = counts_of(frame.table, target.boundaries(loss_scale, frame.scale));
  const auto [significand, exponent] = normalised(frame.scale);
  std::map<int, Interval> binades;
  add_binades(binades, frame.table.scaled_by_power_of_two(-exponent), significand);
  step.binades = to_vector(binades);
  step.moments = frame.moments;
  step.fits_as_is = frame.table.is_exact() && frame.table.exact().fits_as_is(kBinary16);
  step.overflow_at_1 = classify(frame.table, target.boundaries(1.0, frame.scale)).overflow;
  step.largest = frame.table.largest();
  if (step.largest) step.max_abs = to_double(*step.largest) / frame.scale;
  const auto least = frame.table.largest_at_least();
  if (least && least != step.largest) step.max_abs_at_least = to_double(*least) / frame.scale;
  return step;
}

/// Adds a frame's table to the tensor's, after taking out the power of two of its scale.
void add_table(TensorFindings& tensor, const Frame& frame) {
  const auto [significand, exponent] = normalised(frame.scale);
  const BoundedTable shifted = frame.table.scaled_by_power_of_two(-exponent);
  for (ScaledTable& sum : tensor.tables) {
    if (sum.scale == significand) {
      sum.table.merge(shifted);
      return;
    }
  }
  tensor.tables.push_back({significand, shifted});
}

/// Collects the frames of one tensor.
struct Collector {
  TensorFindings tensor;
  std::int64_t last_step = 0;
  Provenance provenance;

  void add(const Frame& frame, const Target& target, double loss_scale) {
    const bool first = tensor.per_step.empty();
    if (first || frame.step >= last_step) {
      tensor.shape = frame.shape;
      last_step = frame.step;
    }
    provenance.add(frame, target.format);
    tensor.unscale_exact = tensor.unscale_exact && unscales_exactly(frame.table, frame.scale);
    add_table(tensor, frame);
    tensor.per_step.push_back(find_step(frame, target, loss_scale));
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
  for (int k = kFirstLog2Scale; k <= kLastLog2Scale; ++k) {
    t.by_scale.push_back(t.classes_at(target, k));
  }
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

bool TensorFindings::computed_in_fp16() const {
  return suspected_fp16 || computed_dtype == Dtype::f16 || source_dtype == Dtype::f16;
}

Boundaries Target::boundaries(double loss_scale, double recorded_scale) const {
  Boundaries limits = halfscope::boundaries(format, loss_scale, recorded_scale);
  if (flush_subnormals) limits.nonzero = limits.normal;
  return limits;
}

Classes TensorFindings::classes_at(const Target& target, int k) const {
  Classes sum;
  for (const ScaledTable& t : tables) {
    sum += classify(t.table, before_scaling(target.boundaries(1.0, t.scale), k));
  }
  return sum;
}

namespace {

/// "it has 12 steps from 0 to 180, the nearest are 0 and 16"
std::string steps_text(const std::set<std::int64_t>& steps, const Selection& selection) {
  std::string text = "it has " + std::to_string(steps.size()) +
                     (steps.size() == 1 ? " step, " : " steps from ") +
                     std::to_string(*steps.begin());
  if (steps.size() == 1) return text;
  text += " to " + std::to_string(*steps.rbegin());
  const auto above = steps.lower_bound(selection.first_step);
  if (above == steps.end()) return text;
  if (above == steps.begin()) return text;
  return text + ", the nearest are " + std::to_string(*std::prev(above)) + " and " +
         std::to_string(*above);
}

[[noreturn]] void refuse_scalars_alone(const std::string& log, std::uint64_t steps) {
  throw log::BadInput(fmt::format(
      "{}: holds the scalars of {} {} and no tables of tensors; want tables (docs/recording.md), "
      "or what scalars alone tell: 'halfscope policies LOG' replays loss-scaling policies",
      log, steps, steps == 1 ? "step" : "steps"));
}

/// Says why nothing was found: reads the log once more, with nothing left out.
[[noreturn]] void refuse_empty(const std::filesystem::path& log, const Selection& selection) {
  Selection everything = selection;
  everything.tensor_glob.reset();
  everything.first_step = std::numeric_limits<std::int64_t>::min();
  everything.end_step = std::numeric_limits<std::int64_t>::max();
  // Which scale no values carry is no question: said here, it is asked of no tensor file.
  if (!readers::is_run_log(log) && log::rank_folders(log).empty()) {
    everything.recorded_scale = 1.0;
    everything.scale_tag.reset();
  }
  std::vector<std::string> names;
  std::set<std::int64_t> steps;
  Notes notes;
  const auto see = [&](Frame&& frame) {
    if (std::find(names.begin(), names.end(), frame.name) == names.end() && names.size() < 5) {
      names.push_back(frame.name);
    }
    steps.insert(frame.step);
  };
  std::uint64_t with_scalars = 0;
  const auto see_scalars = [&](const log::StepScalars&) { ++with_scalars; };
  for_each_frame(log, everything, {see, {}, {}, see_scalars}, notes);
  const std::string shown = printable(log.string());
  if (names.empty() && with_scalars != 0) refuse_scalars_alone(shown, with_scalars);
  if (names.empty()) {
    throw log::BadInput(shown + ": holds no tensor of floating-point values" +
                        (notes.empty() ? std::string() : "; " + notes.front()));
  }
  if (steps.lower_bound(selection.first_step) == steps.lower_bound(selection.end_step)) {
    throw log::BadInput(shown + ": no recorded step is selected by --step; " +
                        steps_text(steps, selection));
  }
  std::string list;
  for (const std::string& name : names)
    list += (list.empty() ? "'" : ", '") + printable(name) + "'";
  throw log::BadInput(shown + ": no tensor is selected by --tensor and --step; it holds " + list +
                      "... at " + std::to_string(steps.size()) + " steps from " +
                      std::to_string(*steps.begin()) + " to " + std::to_string(*steps.rbegin()));
}

/// Appends the series of one log where it has one.
void add_series(SeriesBuilder& builder, const std::string& log, Analysis& analysis) {
  try {
    if (auto series = builder.finish()) analysis.series.push_back(std::move(*series));
  } catch (const log::BadInput& e) {
    analysis.no_series.emplace_back(log, e.what());
  }
}

/// Appends the findings of one log. series: may be null.
void analyze_log(const std::filesystem::path& log, const Selection& selection, Analysis& analysis,
                 const Progress& progress, SeriesBuilder* series) {
  std::vector<Collector> collectors;
  std::map<std::string, std::size_t> index;
  const auto take = [&](Frame&& frame) {
    if (series) series->add(frame);
    const auto [at, is_new] = index.try_emplace(frame.name, collectors.size());
    if (is_new) {
      Collector c;
      c.tensor.log = log.string();
      c.tensor.name = frame.name;
      c.tensor.role = frame.role;
      c.tensor.role_source = frame.role_source;
      c.tensor.counted = frame.counted;
      collectors.push_back(std::move(c));
    }
    collectors[at->second].add(frame, analysis.target,
                               selection.at_run_scale ? frame.run_scale : analysis.loss_scale);
  };
  const auto note_peak = [&](const StepPeak& peak) {
    if (series) series->add(peak);
    analysis.peaks.emplace_back(log.string(), peak);
  };
  const auto note_scalars = [&](const log::StepScalars& scalars) {
    if (series) series->add(scalars);
    analysis.scalars.emplace_back(log.string(), scalars);
  };
  const auto note_manifest = [&](const log::Manifest& manifest) {
    if (series) series->add(manifest);
    analysis.manifests.emplace_back(log.string(), manifest);
  };
  const auto note_rank = [&](const std::vector<log::StepScalars>& scalars) {
    if (series) series->add_rank(scalars);
  };
  const std::size_t kinds = analysis.kinds.size();
  const auto note_kind = [&](const LogKind& kind) {
    analysis.kinds.emplace_back(log.string(), kind);
  };
  const std::size_t found = analysis.peaks.size() + analysis.scalars.size() + analysis.skips.size();
  const auto note_skips = [&](const SkippedSteps& steps) {
    analysis.skips.emplace_back(log.string(), steps);
  };
  for_each_frame(log, selection,
                 {take, note_peak, note_manifest, note_scalars, note_rank, note_kind, note_skips},
                 analysis.notes, progress);
  // Of another tool's log scalars alone are something; a run log's have a command of their own.
  const bool any = analysis.peaks.size() + analysis.scalars.size() + analysis.skips.size() > found;
  const bool foreign = analysis.kinds.size() > kinds;
  if (collectors.empty() && !(foreign && any && !selection.tensor_glob)) {
    refuse_empty(log, selection);
  }
  if (series) add_series(*series, log.string(), analysis);
  std::stable_sort(collectors.begin(), collectors.end(),
                   [](const auto& a, const auto& b) { return a.tensor.role < b.tensor.role; });
  for (Collector& c : collectors) analysis.tensors.push_back(finish(std::move(c), analysis.target));
}

}  // namespace

Analysis analyze(const std::vector<std::filesystem::path>& logs, const Target& target,
                 const Selection& selection, const Progress& progress, bool with_series) {
  if (selection.recorded_scale && !usable_scale(*selection.recorded_scale)) {
    throw std::invalid_argument(
        fmt::format("recorded_scale: found {}, want a positive normal binary32 number",
                    *selection.recorded_scale));
  }
  Analysis analysis;
  analysis.target = target;
  analysis.loss_scale = selection.loss_scale;
  Selection wanted = selection;
  wanted.target = target.format;
  for (const std::filesystem::path& log : logs) {
    analysis.logs.push_back(log.string());
    std::optional<SeriesBuilder> series;
    // A policy decides by all gradients, in binary16.
    if (with_series && !selection.tensor_glob && target.name == Target().name) {
      series.emplace(log.string(), target, selection.recorded_scale);
    }
    analyze_log(log, wanted, analysis, progress, series ? &*series : nullptr);
  }
  return analysis;
}

}  // namespace halfscope::analyzers
