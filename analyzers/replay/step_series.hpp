// SPDX-License-Identifier: Apache-2.0
// A run step by step, as a loss-scaling policy would have seen it.
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

namespace halfscope::analyzers::replay {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The gradients of one attempt: the largest unscaled magnitude. Where that is not finite, some
/// gradient is infinite or NaN at every scale from `overflow_from` up; below it is unknown. 0: at
/// every scale, as where no rounding to 16 bits was to blame.
struct Seen {
  double max_abs = 0;
  double overflow_from = 0;
  /// Not all of the gradients were recorded: `max_abs` is the least that the largest can be.
  bool partial = false;
  /// The run tested its weight gradients at this scale and found all of them finite; negative: it
  /// is not known to have.
  double clean_to = -1;
  /// Where a magnitude is 0: the scale at which rounding to 16 bits may have made it so. At larger
  /// ones it need not be 0. Infinity: it is 0 at every scale.
  double zero_to = kInfinity;
  /// What a policy goes by that follows magnitudes: the largest one of weight gradients, where the
  /// log has these apart; else `max_abs` is it.
  std::optional<double> weights = {};
  bool weights_partial = false;  ///< `weights` is the least that it can be
  /// Of a loss held in FP16, which the scale multiplies too: where it overflows, so do all
  /// gradients.
  double loss = 0;
};

/// What is flushed at each scale in one recorded step, over all counted tensors.
struct FlushedProfile {
  std::int64_t step = 0;
  Interval of;                    ///< finite nonzero values
  int first_log2 = 0;             ///< all scales below flush what this one does, or more
  std::vector<Interval> flushed;  ///< entry i: at scale 2^(first_log2 + i); the last holds above

  /// At any positive scale: exact at powers of two, else between those of the two around it.
  Interval at(double scale) const;
};

/// What ALS and FP8 delayed scaling see of one tensor at one recorded step; unscaled.
struct TensorFacts {
  std::int64_t step = 0;
  double max_abs = 0;              ///< over ranks; infinity where one is infinite or NaN
  unsigned ranks = 1;              ///< that had it
  double mean = 0, deviation = 0;  ///< approximate, of the population; of the finite values
};
struct TensorSeries {
  std::string name;
  log::Role role = log::Role::unknown;
  std::vector<std::uint64_t> shape;
  bool has_moments = true;
  unsigned ranks = 1;              ///< of which each may have other values
  std::vector<TensorFacts> steps;  ///< ascending
};

/// One log, or one plain series of magnitudes.
struct StepSeries {
  std::string log;
  std::vector<std::int64_t> steps;  ///< ascending; a plain series counts from 0
  std::vector<Seen> seen;           ///< one a step; where a step was retried, its first attempt
  /// By index into `steps`: all attempts of a step that was tried more than once.
  std::map<std::size_t, std::vector<Seen>> retried;
  /// What the run itself did, where it says so; one a step, or empty.
  std::vector<std::optional<double>> recorded_scale;
  std::vector<std::optional<bool>> recorded_skip;
  /// By index into `steps`: those that close_gaps() made, which the run does not tell of; or empty.
  std::vector<bool> filled;
  /// Steps the run skipped for an infinity although no recorded magnitude overflows: (index, the
  /// largest magnitude, unscaled). `seen` has infinity there.
  std::vector<std::pair<std::size_t, double>> unexplained;
  std::vector<FlushedProfile> flushed;  ///< of the steps that have tables, ascending
  /// Weights, their gradients, activation gradients, as first seen; of activations the names alone,
  /// which tell the order of computation.
  std::vector<TensorSeries> tensors;
  std::optional<log::Manifest> manifest;
  bool from_magnitudes = false;  ///< a plain series: one tensor, nothing else known
  bool from_scale = false;       ///< scale_series(): nothing is known of gradients
  bool from_buckets = false;     ///< some counts are known between bounds alone
  bool in_bfloat16 = false;      ///< gradients were computed in bfloat16, and none in binary16
  frames::Notes notes;           ///< what no replay of it can know
};

/// Collects one log's series as it is read.
class SeriesBuilder {
 public:
  /// recorded_scale: --recorded-scale, that values recorded as scaled carry.
  SeriesBuilder(std::string log, const underflow::Target& target,
                std::optional<double> recorded_scale = std::nullopt);
  void add(const frames::Frame& frame);
  void add(const log::StepScalars& scalars);
  void add(const log::Manifest& manifest);
  /// Of any rank: a step overflows where it does on one of them.
  void add(const frames::StepPeak& peak);
  /// It is another tool's log: of one without tensors and peaks nothing is kept, scale_series.hpp
  /// has what its scalars tell.
  void add(const frames::LogKind& kind);
  /// Of a rank after the first: what a step's gradients were is known where all ranks tell.
  void add_rank(const std::vector<log::StepScalars>& scalars);
  /// Empty where the log has no every-step scalars.
  std::optional<StepSeries> finish();

 private:
  struct Found;
  std::shared_ptr<Found> found_;
};

/// Of a log whose weight gradients were clipped: they were as large as recorded, or larger.
void weights_at_least(StepSeries& series);

/// What logs that are read one after another have of series.
struct LogSeries {
  std::vector<StepSeries> series;  ///< of run logs that have scalars of every step
  /// Log and reason of those that cannot be put together.
  std::vector<std::pair<std::string, frames::Message>> none;
};

/// Collects the series of logs while they are analysed; a Companion of analyze(). What begin()
/// gives must not outlive it.
class SeriesCollector {
 public:
  SeriesCollector(const underflow::Target& target, std::optional<double> recorded_scale)
      : target_(target), recorded_scale_(recorded_scale) {}
  frames::Visitor begin(const std::string& log);
  /// logs: those that were read, to tell whose weight gradients were clipped.
  LogSeries finish(const std::vector<underflow::LogFindings>& logs);

 private:
  void start(const std::string& log);
  void finish_log();

  const underflow::Target& target_;
  std::optional<double> recorded_scale_;
  std::string log_;
  std::unique_ptr<SeriesBuilder> builder_;  // of the log, or the run in it, that is being read
  LogSeries found_;
};

/// One largest unscaled magnitude a line, "nan" and "inf" allowed. Throws log::BadInput naming the
/// line.
StepSeries read_magnitudes(const std::filesystem::path& file);

/// Makes every step between the first and the last present: those that are missing are like the
/// one before. Without `assume_constant` a gap throws log::BadInput naming it.
void close_gaps(StepSeries& series, bool assume_constant);

}  // namespace halfscope::analyzers::replay
