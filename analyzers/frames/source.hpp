// SPDX-License-Identifier: Apache-2.0
// What an analyzer sees of a log, whatever kind of log it is: frames.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/frames/message.hpp"
#include "analyzers/frames/notes.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/run_log.hpp"
#include "halfscope/table/bounded_table.hpp"

namespace halfscope::analyzers::frames {

/// How a tensor came by its role.
enum class RoleSource : std::uint8_t {
  name,    ///< the name begins with it
  option,  ///< --role GLOB=ROLE
  /// No name of the file carries a role, nor is any given: taken as weight_grad, and what is called
  /// as an optimizer's state (".exp_avg") as optimizer_state.
  assumed,
  file,  ///< as above, but the file shows that it holds a model's weights
  none   ///< other names of the file carry roles or --role names some, but none of this one
};
std::string_view name_of(RoleSource source);

/// What the tensors of a file are in which no name carries a role.
enum class Unnamed : std::uint8_t { gradients, weights };

/// One tensor at one step, as recorded.
struct Frame {
  std::string name;
  log::Role role = log::Role::unknown;
  RoleSource role_source = RoleSource::none;
  bool loss_scaled = false;  ///< a loss scale acts on it: a gradient, or a loss held in FP16
  std::int64_t step = 0;
  std::optional<Dtype> source_dtype;    ///< what the values were held in; empty as below
  std::optional<Dtype> computed_dtype;  ///< as recorded; empty where the log does not say
  double scale = 1.0;                   ///< unscaled value = recorded value / scale
  /// Where a loss scale acts on it, that of its step: the one its values carry, else the one the
  /// log's scalars tell; 1 where it is unknown.
  double run_scale = 1.0;
  std::vector<std::uint64_t> shape;  ///< where a log has counts alone: {number of elements}
  BoundedTable table;                ///< of the recorded values
  /// Of the recorded values, approximate: of run logs; of weight gradients in files of many steps.
  std::optional<Moments> moments;
  unsigned ranks = 1;       ///< of several: those that had it
  double rank_max_abs = 0;  ///< unscaled, over ranks whose tables are not added to this one
};

/// Which part of a log is wanted, and what the user says about it.
struct Selection {
  std::int64_t first_step = std::numeric_limits<std::int64_t>::min();
  std::int64_t end_step = std::numeric_limits<std::int64_t>::max();  ///< half-open
  std::optional<std::string> tensor_glob;                            ///< --tensor
  std::vector<std::pair<std::string, log::Role>> roles;              ///< --role, first match holds
  std::optional<double> recorded_scale;                              ///< --recorded-scale S
  std::optional<std::string> scale_tag;                              ///< --recorded-scale TAG
  std::optional<Dtype> read_as;  ///< --as: what NPY elements of 2 bytes without a type stand for
  std::optional<double> learning_rate;  ///< --lr, where the log does not say
  std::optional<std::uint64_t> ranks;   ///< --ranks: that print into a console log
  std::optional<std::string> lines;     ///< --lines: the pattern of a console log's lines
  /// The format and scale whose boundaries are to be exact on values, besides all powers of two.
  Format target = kBinary16;
  double loss_scale = 1.0;
  bool at_run_scale = false;     ///< count at each step's own loss scale (Frame::run_scale) instead
  bool scalars_suffice = false;  ///< a run log without tensors is no error
};

/// Whether `glob` (*, ?, [...]) matches the whole of `text`.
bool matches(const std::string& glob, const std::string& text);

/// Whether a tensor is selected: by its name, or the part of it after the role.
bool selects(const Selection& selection, const std::string& tensor_name);

bool in_steps(const Selection& selection, std::int64_t step);

/// Whether a number can be a loss scale: positive and a normal binary32 number, since training
/// applies it in binary32 at most.
bool usable_scale(double scale);

/// The loss scale a record's values carry. Throws log::BadInput naming `log` where it is unknown.
double scale_of(const log::TensorRecord& record, const Selection& selection,
                const std::filesystem::path& log);

/// Told how far reading is: bytes done, bytes in all; by any thread, one at a time. May be empty.
using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

using FrameVisitor = std::function<void(Frame&&)>;

/// The largest magnitude over all tensors of a role at one step. A run log has it for every step,
/// whichever steps have tables. Of logs without counts: that of one tensor.
struct StepPeak {
  log::Role role = log::Role::unknown;
  std::int64_t step = 0;
  /// Unscaled; infinity and NaN are themselves; 0 where the log has none. The most that it can be.
  double max_abs = 0;
  std::optional<double> loss_scale = {};       ///< of the step, where known
  std::string tensor = {};                     ///< empty: over all tensors of the role
  std::optional<double> at_least = {};         ///< the least that it can be, where that is less
  std::optional<double> min_abs_nonzero = {};  ///< no nonzero value is smaller, where known
};
using PeakVisitor = std::function<void(const StepPeak&)>;

/// What a log does not hold and answers are missing for; reports/answer/gaps.hpp has the words.
enum class Gap : std::uint8_t {
  zeros,       ///< zeros are not told from the smallest values
  underflow,   ///< buckets are so wide that flushed values are not told from others
  nonfinite,   ///< infinities and NaN were left out without a count
  rounded,     ///< printed numbers are rounded
  dtype,       ///< which format values were computed in
  loss_scale,  ///< which loss scale the values carry
  counts,      ///< how many values are how large: only extremes or sums are there
  tensors,     ///< magnitudes of tensors: there are scalars alone
  updates,     ///< weights beside their updates
  steps,       ///< which step an entry is of: entries are counted instead
  every_step   ///< the steps between those recorded
};
/// How many processes print each message of a skipped step into a console log.
struct PrintingRanks {
  std::uint64_t ranks = 1;
  bool asked = false;   ///< --ranks says so
  bool certain = true;  ///< false: taken from few or uneven runs of equal lines
};

/// A loss scaler of a run that is not the one whose messages were counted.
struct OtherScaler {
  int scaler = 0;
  std::uint64_t messages = 0;             ///< of a step that it skipped
  std::optional<double> scale_last = {};  ///< what the last one left
};

/// Which tool wrote a log, as far as its kind shows; of several the last one here has the loss
/// scale.
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

/// The parts of the loss at the first step at which one of them was NaN or infinite.
struct BadLossPart {
  std::int64_t step = 0;
  std::string name = {};          ///< of the first such part, as printed
  std::uint64_t bad = 0, of = 0;  ///< such parts, and all parts
};

/// What kind of log it is, in words ("TensorBoard histograms"), and what such a one leaves open.
struct LogKind {
  std::string name;
  std::vector<Gap> gaps;  ///< ascending
  /// Skipped steps are told by the scale's falls: those at its minimum, say, do not show.
  bool skips_at_least = false;
  std::string scale_tag = {};  ///< of the scalar that is taken as the loss scale, where one is
  PrintingRanks ranks = {};    ///< of a console log
  std::uint64_t perhaps_skipped = 0;  ///< more steps than it tells were skipped, at the most
  bool ended_at_minimum = false;  ///< the run ended since its scale could not be lowered any more
  /// A counter tells how many steps were skipped of this one and those after it.
  std::optional<std::int64_t> counted_from = {};
  int scaler = 0;                               ///< of several the one whose messages are counted
  std::vector<OtherScaler> other_scalers = {};  ///< ascending
  /// The last step that it tells of: a scale beyond is the one that the run ended with.
  std::optional<std::int64_t> last_step = {};
  /// Overflows after which the scale falls, where lines tell that it takes more than one.
  std::optional<std::int64_t> hysteresis = {};
  std::optional<BadLossPart> bad_loss_part = {};  ///< empty: no part was, or none is printed
  /// How lines were read, where that decides what is reported: sentences without a full stop.
  std::vector<std::string> remarks = {};
  Tool tool = Tool::other;
};
using KindVisitor = std::function<void(const LogKind&)>;
/// Steps of which some were skipped, where a log tells no more than between which.
struct SkippedSteps {
  std::int64_t first = 0;
  std::optional<std::int64_t> last = {};  ///< inclusive; empty: the log ends before it tells
  Interval count = {};                    ///< so many of them were skipped
  std::optional<double> scale_from = {};  ///< before the first of these
  std::optional<double> scale_to = {};    ///< after the last
  std::vector<double> scales = {};        ///< between: each in order, as far as it is told
};
/// Scalars of another tool's log that are told where they show that something broke: the gradients'
/// norm and the loss of evaluations where they are NaN or infinite, and from there on; how many
/// iterations had NaN since the last such scalar.
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

/// What reading a log calls. All but `frame` may be empty.
struct Visitor {
  FrameVisitor frame;
  PeakVisitor peak;
  ManifestVisitor manifest;  ///< of a run log; rank 0's where there are ranks
  ScalarsVisitor scalars;    ///< every selected step of a run log, whichever tensors are selected
  /// Called once for each rank after the first, with the same of that rank; ascending.
  RankVisitor other_rank = {};
  RankFrameVisitor rank_frame = {};  ///< of one rank alone, before ranks are added up
  /// After the frames of each rank: its scalars, of every selected step. Ascending by rank.
  RankScalarsVisitor rank_scalars = {};
  KindVisitor kind = {};     ///< of a log that is neither a run log nor of tensors; perhaps several
  SkipVisitor skipped = {};  ///< beside the steps whose scalars say found_inf; ascending
  RunVisitor run = {};  ///< what follows is of this one of several runs in the log; of one: never
  QuantisedVisitor quantised = {};  ///< what FP8 or FP4 made of a tensor, as the framework measured
  SumsVisitor sums = {};  ///< of each tensor of a tensor file, taken in the pass over its values
};

}  // namespace halfscope::analyzers::frames
