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

namespace halfscope::analyzers {
namespace {

using log::printable;

/// scale = significand * 2^exponent, significand in [1, 2).
std::pair<double, int> normalised(double scale) {
  int exponent = 0;
  const double half = std::frexp(scale, &exponent);
  return {2 * half, exponent - 1};
}

/// Unscaled binades of a table whose values carry `scale` in [1, 2).
void add_binades(std::map<int, Interval>& sum, const BinadeTable& table, double scale) {
  if (!table.largest()) return;
  if (scale == 1.0) {
    for (const BinadeTable::Row& row : table.rows()) sum[row.exponent] += row.count();
    return;
  }
  const int last = table.largest()->exponent;
  for (int e = table.smallest()->exponent - 1; e <= last; ++e) {
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

Counts counts_of(const BinadeTable& table, const Boundaries& limits) {
  return {table.total(), table.specials().zero, table.specials().nan, table.infinities(),
          classify(table, limits)};
}

/// Whether the table has the cuts that unscaling by this scale asks for.
bool unscales_exactly(const BinadeTable& table, double scale) {
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
  step.fits_as_is = frame.table.fits_as_is(kBinary16);
  step.overflow_at_1 = classify(frame.table, target.boundaries(1.0, frame.scale)).overflow;
  step.largest = frame.table.largest();
  if (step.largest) step.max_abs = to_double(*step.largest) / frame.scale;
  return step;
}

/// Adds a frame's table to the tensor's, after taking out the power of two of its scale.
void add_table(TensorFindings& tensor, const Frame& frame) {
  const auto [significand, exponent] = normalised(frame.scale);
  const BinadeTable shifted = frame.table.scaled_by_power_of_two(-exponent);
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
    provenance.add(frame);
    tensor.unscale_exact = tensor.unscale_exact && unscales_exactly(frame.table, frame.scale);
    add_table(tensor, frame);
    tensor.per_step.push_back(find_step(frame, target, loss_scale));
  }
};

void set_extremes(TensorFindings& t) {
  for (const ScaledTable& sum : t.tables) {
    if (!sum.table.largest()) continue;
    const double largest = to_double(*sum.table.largest()) / sum.scale;
    const double smallest = to_double(*sum.table.smallest()) / sum.scale;
    t.max_abs = std::max(t.max_abs.value_or(largest), largest);
    t.min_abs_nonzero = std::min(t.min_abs_nonzero.value_or(smallest), smallest);
  }
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
  classes += other.classes;
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
  if (!log::RunLog::is_one(log) && log::rank_folders(log).empty()) everything.recorded_scale = 1.0;
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
  for_each_frame(log, selection, {take, note_peak, note_manifest, note_scalars, note_rank},
                 analysis.notes, progress);
  if (collectors.empty()) refuse_empty(log, selection);
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
