// SPDX-License-Identifier: Apache-2.0
// The steps of a run, as a loss-scaling policy would have seen them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "halfscope/table/interval.hpp"

namespace halfscope::analyzers::underflow {
struct LogFindings;  // underflow.hpp
struct Target;
}  // namespace halfscope::analyzers::underflow
namespace halfscope::analyzers::scale_history {
struct TimelineFacts;
}

namespace halfscope::analyzers::replay {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The gradients of one attempt; magnitudes are unscaled. If `max_abs`, the largest, is not finite,
/// some gradient is infinite or NaN at every scale from `overflow_from` up; below that it is
/// unknown. `overflow_from` is 0 for every scale, for example if no rounding to 16 bits made it.
struct AttemptMagnitudes {
  double max_abs = 0;
  double overflow_from = 0;
  /// Not all gradients were recorded: `max_abs` is a lower bound of the largest magnitude.
  bool partial = false;
  /// The run tested its weight gradients at this scale: all were finite. Negative: no known test.
  double clean_to = -1;
  /// If a magnitude is 0: the scale at which rounding to 16 bits may have made it 0. At larger
  /// scales it may be nonzero. Infinity: it is 0 at every scale.
  double zero_to = kInfinity;
  /// Largest magnitude of weight gradients, for policies that follow magnitudes. Empty if the log
  /// does not have it separately; then `max_abs` is used.
  std::optional<double> weights = {};
  bool weights_partial = false;  ///< `weights` is a lower bound
  /// Magnitude of a loss held in FP16, which the scale multiplies too: if it overflows, so do all
  /// gradients. 0 if there is none.
  double loss = 0;
};

/// The number of values that each scale flushes in one recorded step, over all counted tensors.
struct FlushedProfile {
  std::int64_t step = 0;
  Interval of;                    ///< finite nonzero values
  int first_log2 = 0;             ///< log2 scale of the first entry; smaller scales flush no less
  std::vector<Interval> flushed;  ///< entry i: at 2^(first_log2 + i); the last also above that

  /// Returns the count at a positive scale: exact at powers of two, bounds between them.
  Interval at(double scale) const;
};

/// Statistics of one tensor at one recorded step, unscaled, for ALS and FP8 delayed scaling.
struct TensorFacts {
  std::int64_t step = 0;
  double max_abs = 0;              ///< over ranks; infinity if a value is infinite or NaN
  unsigned ranks = 1;              ///< number of ranks that had the tensor
  double mean = 0, deviation = 0;  ///< over finite values, approximate; population deviation
};
struct TensorSeries {
  std::string name;
  log::Role role = log::Role::unknown;
  std::vector<std::uint64_t> shape;
  bool has_moments = true;
  unsigned ranks = 1;              ///< number of ranks that may hold different values
  std::vector<TensorFacts> steps;  ///< ascending
};

/// The steps of one log, or of a plain series of magnitudes.
struct StepSeries {
  std::string log;
  std::vector<std::int64_t> steps;  ///< ascending; a plain series counts from 0
  std::vector<AttemptMagnitudes>
      seen;  ///< one per step; the first attempt of a step that was retried
  /// By index into `steps`: all attempts of each step that was tried more than once.
  std::map<std::size_t, std::vector<AttemptMagnitudes>> retried;
  /// The run's own scale and skip, if recorded: one per step, or empty.
  std::vector<std::optional<double>> recorded_scale;
  std::vector<std::optional<bool>> recorded_skip;
  /// By index into `steps`: true for steps that close_gaps() inserted. Empty if there are none.
  std::vector<bool> filled;
  /// Steps that the run skipped for an infinity although no recorded magnitude overflows: (index,
  /// largest unscaled magnitude). `seen` has infinity there.
  std::vector<std::pair<std::size_t, double>> unexplained;
  std::vector<FlushedProfile> flushed;  ///< one per step that has histograms, ascending
  /// Weights, weight gradients and activation gradients, in the order of their first record;
  /// activations have only names, which show the order of computation.
  std::vector<TensorSeries> tensors;
  std::optional<log::Manifest> manifest;
  bool from_magnitudes = false;  ///< a plain series: one tensor, no other data
  bool from_scale = false;       ///< made by scale_series(): gradients are unknown
  bool from_buckets = false;     ///< some counts are known as bounds only
  bool in_bfloat16 = false;      ///< some gradients were computed in bfloat16 and none in binary16
  frames::Notes notes;           ///< facts that no replay of this series can know
};

/// Marks all magnitudes as lower bounds: the log's weight gradients were clipped before recording.
void weights_at_least(StepSeries& series);

/// The series of logs that are read one after another.
struct LogSeries {
  std::vector<StepSeries> series;  ///< for run logs that have scalars of every step
  /// Names of the logs whose series cannot be built, each with the reason.
  std::vector<std::pair<std::string, frames::Message>> none;
};

struct SeriesBuilder;

/// Collects the series of logs while they are analysed; a Companion of analyze(). The visitor that
/// begin() returns must not outlive this object.
class SeriesCollector {
 public:
  SeriesCollector(const underflow::Target& target, std::optional<double> recorded_scale)
      : target_(target), recorded_scale_(recorded_scale) {}
  frames::Visitor begin(const std::string& log);
  /// Returns the series. `logs`: the findings of these logs, which show if gradients were clipped.
  LogSeries finish(const std::vector<underflow::LogFindings>& logs);

 private:
  void start(const std::string& log);
  void finish_log();

  const underflow::Target& target_;
  std::optional<double> recorded_scale_;
  std::string log_;
  std::shared_ptr<SeriesBuilder> builder_;  // for the log, or the run in it, that is being read
  LogSeries found_;
};

/// Returns a series for a run whose log has its loss scale and skipped steps but no gradients. An
/// applied step is clean at its scale and below; a skipped step overflows at
/// its scale and above; nothing else is known. If a range has a number of skipped steps, its first
/// ones count as skipped. Empty if the log has no step numbers, no scale, or no data on skips.
std::optional<StepSeries> scale_series(const underflow::LogFindings& log,
                                       const scale_history::TimelineFacts& facts);

/// Reads a file with one largest unscaled magnitude per line; "nan" and "inf" are allowed. Throws
/// log::BadInput with the line.
StepSeries read_magnitudes(const std::filesystem::path& file);

/// Inserts the missing steps between the first and the last; each repeats the step before. Throws
/// log::BadInput if there is a gap and `assume_constant` is false, or if the gaps are too wide.
void close_gaps(StepSeries& series, bool assume_constant);

}  // namespace halfscope::analyzers::replay
