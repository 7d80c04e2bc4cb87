// SPDX-License-Identifier: Apache-2.0
// Frames and callbacks: the form in which analyzers read a log of any kind.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/frames/message.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/run_log.hpp"
#include "halfscope/table/bounded_table.hpp"

namespace halfscope::analyzers::frames {

/// Origin of a tensor's role.
enum class RoleSource : std::uint8_t {
  name,    ///< the name begins with the role
  option,  ///< --role GLOB=ROLE
  /// No name in the file has a role and no option sets one. The tensor counts as weight_grad, or as
  /// optimizer_state if its name is one of an optimizer's state (".exp_avg").
  assumed,
  file,  ///< as `assumed`, but the file shows that it holds a model's weights
  none   ///< no role: other tensors of the file have one by name or --role, this one does not
};
std::string_view name_of(RoleSource source);

/// Contents of a file in which no name has a role.
enum class Unnamed : std::uint8_t { gradients, weights };

/// One tensor at one step, as recorded.
struct Frame {
  std::string name;
  log::Role role = log::Role::unknown;
  RoleSource role_source = RoleSource::none;
  bool loss_scaled = false;  ///< a loss scale acts on it: a gradient, or a loss held in FP16
  std::int64_t step = 0;
  std::optional<Dtype> source_dtype;    ///< type that stored them; empty if the log does not say
  std::optional<Dtype> computed_dtype;  ///< type that computed them; empty if the log does not say
  double scale = 1.0;                   ///< unscaled value = recorded value / scale
  /// If loss_scaled, the step's loss scale: the one in the values, else the one in the log's
  /// scalars; 1 if it is unknown.
  double run_scale = 1.0;
  std::vector<std::uint64_t> shape;  ///< {number of elements} if the log has only counts
  BoundedTable table;                ///< histogram of the recorded values
  /// Approximate, of the recorded values: in run logs; for weight gradients in files of many steps.
  std::optional<Moments> moments;
  unsigned ranks = 1;       ///< number of ranks that had the tensor
  double rank_max_abs = 0;  ///< unscaled, over ranks whose histograms are not added to this
};

/// The part of a log to read, and what the user says about it.
struct Selection {
  std::int64_t first_step = std::numeric_limits<std::int64_t>::min();
  std::int64_t end_step = std::numeric_limits<std::int64_t>::max();  ///< exclusive
  std::optional<std::string> tensor_glob;                            ///< --tensor
  std::vector<std::pair<std::string, log::Role>> roles;  ///< --role; the first match wins
  std::optional<double> recorded_scale;                  ///< --recorded-scale S
  std::optional<std::string> scale_tag;                  ///< --recorded-scale TAG
  std::optional<Dtype> read_as;         ///< --as: type of untyped 2-byte NPY elements
  std::optional<double> learning_rate;  ///< --lr, used if the log does not say
  std::optional<std::uint64_t> ranks;   ///< --ranks: number of ranks printing to a console log
  std::optional<std::string> lines;     ///< --lines: the pattern of a console log's lines
  /// Counts are exact at the boundaries of this format and scale, besides all powers of two.
  Format target = kBinary16;
  double loss_scale = 1.0;
  bool at_run_scale = false;         ///< use each step's own loss scale (Frame::run_scale) instead
  bool scalars_suffice = false;      ///< a run log without tensors is no error
  bool unnamed_are_weights = false;  ///< a file in which no name has a role holds a model's weights
};

/// Returns true if `glob` (*, ?, [...]) matches all of `text`.
bool matches(const std::string& glob, const std::string& text);

/// Returns true if a tensor is selected by its full name or by the part after its role.
bool selects(const Selection& selection, const std::string& tensor_name);

bool in_steps(const Selection& selection, std::int64_t step);

/// Returns true if a number can be a loss scale: a positive normal binary32 number, since training
/// applies scales in binary32 at most.
bool usable_scale(double scale);

/// Returns the loss scale in a record's values. Throws log::BadInput, naming `log`, if unknown.
double scale_of(const log::TensorRecord& record, const Selection& selection,
                const std::filesystem::path& log);

/// Progress callback: receives the bytes done and the total bytes. Calls may come from any thread
/// but never overlap. An empty function reports nothing.
using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

using FrameVisitor = std::function<void(Frame&&)>;

/// The largest magnitude at one step over all tensors of a role, or of one tensor if the log has no
/// counts. A run log has peaks for every step, also for steps without histograms.
struct StepPeak {
  log::Role role = log::Role::unknown;
  std::int64_t step = 0;
  /// Upper bound of the magnitude, unscaled. Infinity and NaN are kept; 0 if the log has none.
  double max_abs = 0;
  std::optional<double> loss_scale = {};  ///< the step's; empty if unknown
  std::string tensor = {};                ///< empty: over all tensors of the role
  std::optional<double> at_least = {};    ///< lower bound of the magnitude, if less than max_abs
  std::optional<double> min_abs_nonzero = {};  ///< lower bound of nonzero magnitudes, if known
};
using PeakVisitor = std::function<void(const StepPeak&)>;

/// Information that a log lacks, so that answers are missing. Words: reports/answer/gaps.hpp.
enum class Gap : std::uint8_t {
  zeros,       ///< zeros cannot be separated from the smallest values
  underflow,   ///< wide buckets hide which values are flushed
  nonfinite,   ///< infinities and NaN were left out without a count
  rounded,     ///< printed numbers are rounded
  dtype,       ///< format in which values were computed
  loss_scale,  ///< loss scale contained in the values
  counts,      ///< histograms: there are only extremes or sums
  tensors,     ///< magnitudes of tensors: there are only scalars
  updates,     ///< weights together with their updates
  steps,       ///< step numbers: entries are counted instead
  every_step   ///< steps between the recorded ones
};
/// Number of processes that each print the message of a skipped step into a console log.
struct PrintingRanks {
  std::uint64_t ranks = 1;
  bool asked = false;   ///< the number is from --ranks
  bool certain = true;  ///< false: estimated from few or uneven runs of equal lines
};

/// A loss scaler of the run other than the one whose messages were counted.
struct OtherScaler {
  int scaler = 0;
  std::uint64_t messages = 0;             ///< number of messages about steps that it skipped
  std::optional<double> scale_last = {};  ///< the scale after its last message
};

/// Tool that wrote a log, as far as its kind shows. If several did, the last one in this list
/// controls the loss scale.
enum class Tool : std::uint8_t {
  other,
  tensorboard,
  transformers,
  nemo,
  megatron,
  fairseq,
  fairseq2,
  apex,
  colossalai,
  mindspore,
  paddle,
  deepspeed
};

/// The line of a file, counted from 1, that reports a step.
struct PrintedLine {
  std::int64_t step = 0;
  std::uint64_t line = 0;
};

/// The parts of the loss at the first step at which one of them was NaN or infinite.
struct BadLossPart {
  std::int64_t step = 0;
  std::string name = {};          ///< name of the first such part, as printed
  std::uint64_t bad = 0, of = 0;  ///< number of such parts, and of all parts
};

/// The kind of a log, in words ("TensorBoard histograms"), and what such logs lack.
struct LogKind {
  std::string name;
  std::vector<Gap> gaps;  ///< ascending
  /// Skipped steps are inferred from falls of the scale; those at its minimum, say, are missed.
  bool skips_at_least = false;
  std::string scale_tag = {};         ///< tag of the scalar used as the loss scale; empty: none
  PrintingRanks ranks = {};           ///< for a console log
  std::uint64_t perhaps_skipped = 0;  ///< upper bound of further skipped steps that do not show
  bool ended_at_minimum = false;      ///< the run ended because its scale could not fall further
  /// First step that a counter of skipped steps covers; empty if the log has no counter.
  std::optional<std::int64_t> counted_from = {};
  int scaler = 0;                               ///< number of the scaler whose messages are counted
  std::vector<OtherScaler> other_scalers = {};  ///< ascending
  /// The last step in the log. A scale reported after it is the one that the run ended with.
  std::optional<std::int64_t> last_step = {};
  /// Overflows after which the scale falls, if lines show that it takes more than one.
  std::optional<std::int64_t> hysteresis = {};
  std::optional<PrintedLine> nonfinite_line = {};  ///< from here on losses or norms are non-finite
  std::optional<BadLossPart> bad_loss_part = {};   ///< empty: no part was, or none is printed
  /// How lines were read, if that affects the results. Sentences without a full stop.
  std::vector<std::string> remarks = {};
  Tool tool = Tool::other;
};
using KindVisitor = std::function<void(const LogKind&)>;
/// A range of steps in which some were skipped, if the log does not say which ones.
struct SkippedSteps {
  std::int64_t first = 0;
  std::optional<std::int64_t> last = {};  ///< inclusive; empty: the log ends first
  Interval count = {};                    ///< number of skipped steps in the range
  std::optional<double> scale_from = {};  ///< before the first step
  std::optional<double> scale_to = {};    ///< after the last step
  std::vector<double> scales = {};        ///< between these two, in order, as far as known
};
/// Scalars of another tool's log that show that something broke: the gradients' norm and the
/// evaluation loss, from their first NaN or infinite value on, and the number of iterations with
/// NaN since the previous such scalar.
inline constexpr std::string_view kGradientNorm = "gradient_norm";
inline constexpr std::string_view kEvaluationLoss = "evaluation_loss";
inline constexpr std::string_view kNanIterations = "nan_iterations";

using SkipVisitor = std::function<void(const SkippedSteps&)>;
struct QuantisedSeries;  // quantised.hpp
using QuantisedVisitor = std::function<void(const QuantisedSeries&)>;
struct CountedSums;  // whole_counts.hpp
using SumsVisitor = std::function<void(CountedSums&&)>;
using RunVisitor = std::function<void(const std::string& name)>;
using ManifestVisitor = std::function<void(const log::Manifest&)>;
using ScalarsVisitor = std::function<void(const log::StepScalars&)>;
using RankVisitor = std::function<void(const std::vector<log::StepScalars>&)>;
using RankFrameVisitor = std::function<void(const Frame&)>;
using RankScalarsVisitor =
    std::function<void(std::uint64_t rank, const std::vector<log::StepScalars>&)>;

/// Callbacks for reading a log. A callback that is empty is not called; `frame` must not be empty.
struct Visitor {
  FrameVisitor frame;
  PeakVisitor peak;
  ManifestVisitor manifest;  ///< for a run log; rank 0's if there are ranks
  ScalarsVisitor scalars;  ///< for every selected step of a run log, whichever tensors are selected
  /// Called once for each rank after the first with that rank's scalars; ascending by rank.
  RankVisitor other_rank = {};
  RankFrameVisitor rank_frame = {};  ///< for each frame of one rank, before ranks are added up
  /// Called after the frames of each rank: its scalars of every selected step. Ascending by rank.
  RankScalarsVisitor rank_scalars = {};
  KindVisitor kind = {};  ///< kind of a log other than run logs and tensor files; perhaps several
  SkipVisitor skipped = {};  ///< skipped steps without found_inf in scalars; ascending
  RunVisitor run = {};       ///< before each of several runs in a log; for a log of one run never
  QuantisedVisitor quantised = {};  ///< FP8 or FP4 statistics that the framework measured
  SumsVisitor sums = {};  ///< for each tensor of a tensor file, from the pass over its values
};

}  // namespace halfscope::analyzers::frames
