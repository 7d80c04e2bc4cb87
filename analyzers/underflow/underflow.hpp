// SPDX-License-Identifier: Apache-2.0
// The effect of rounding every tensor of a log to a format: `halfscope analyze`.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/logs.hpp"
#include "analyzers/underflow/clipped.hpp"
#include "analyzers/underflow/step_list.hpp"
#include "analyzers/underflow/whole_findings.hpp"
#include "halfscope/log/shared_text.hpp"
#include "halfscope/table/binade_table.hpp"
#include "halfscope/table/count/magnitude_sums.hpp"
#include "halfscope/table/rare.hpp"

namespace halfscope::analyzers::underflow {

/// Default range of loss scales in reports: 2^-24 to 2^40.
inline constexpr int kFirstLog2Scale = -24;
inline constexpr int kLastLog2Scale = 40;

/// The format that values are rounded to.
struct Target {
  std::string_view name = "binary16";
  Format format = kBinary16;
  /// Results below the smallest normal: kept, or zero as in hardware's flush-to-zero mode.
  Subnormals subnormals = Subnormals::keep;
  /// No option named this format: then a run in bfloat16 is judged in bfloat16 (study.hpp).
  bool by_default = false;

  /// Returns the format's boundaries; smaller magnitudes than Boundaries::nonzero are flushed.
  Boundaries boundaries(double loss_scale, double recorded_scale) const;
};

/// Histograms of one tensor, summed over steps whose scales differ by powers of two.
struct ScaledTable {
  double scale = 1.0;  ///< in [1, 2); unscaled value = table value / scale
  BoundedTable table;
};

/// One tensor of one log over the selected steps.
struct TensorFindings {
  log::SharedText log;
  std::string name;
  log::Role role = log::Role::unknown;
  frames::RoleSource role_source = frames::RoleSource::none;
  std::optional<Dtype> source_dtype;    ///< empty if the log does not say
  std::optional<Dtype> computed_dtype;  ///< as recorded, or what the source dtype implies
  bool suspected_fp16 = false;          ///< stored wide, but values are 2^k times binary16 values
  bool zeros_may_be_flushed = false;    ///< computed in a format that flushes as much as the target
  bool underflow_identifiable = true;   ///< zeros are surely zeros, or there are none
  /// A bucket of the log contains zero and values that FP16 keeps. The number of flushed values is
  /// then unknown, and underflow_identifiable is false.
  bool hidden_by_buckets = false;
  bool hidden_in_bfloat16 = false;  ///< the same for bfloat16, if known_in_bfloat16
  bool loss_scaled = false;         ///< a loss scale acts on it; Frame::loss_scaled
  bool unscale_exact = true;
  std::vector<std::uint64_t> shape;  ///< shape at the last step

  Counts counts;                                   ///< at Analysis::loss_scale, over all steps
  std::optional<double> max_abs, min_abs_nonzero;  ///< unscaled, finite; upper and lower bound
  /// If only bounds are known: lower bound of max_abs, upper bound of min_abs_nonzero.
  std::optional<double> max_abs_at_least, min_abs_at_most;
  BinadeCounts binades;
  /// Number of the smallest nonzero values over all steps that are rounding errors of sums whose
  /// exact value is 0. No target counts them. rounding_noise.hpp sets it.
  std::uint64_t rounding_noise = 0;
  StepList per_step;                ///< ascending by step
  std::vector<ScaledTable> tables;  ///< sums over all steps; the numbers above are from these

  /// Outcome of a weight's updates; null if no pairs were sampled. updates::UpdatePass sets it.
  std::shared_ptr<const UpdateFindings> updates;
  Rare<WholeFindings> whole;
  /// Exact sums of the unscaled values, if the log has every step's whole tensor.
  Rare<std::optional<PackedSums>> sums;

  /// Returns `count` of its values without rounding_noise, which are the smallest nonzero values.
  Interval without_noise(const Interval& count) const;
  /// Returns true if its values were computed in binary16, as far as the log or the values show.
  /// Then a zero may stand for a value of at most 2^-25 over the scale, and an infinity for one of
  /// 65520 or more.
  bool computed_in_fp16() const;
  /// Returns the classes of its values after rounding to `target` at loss scale 2^k, for any k.
  Classes classes_at(const Target& target, int k) const;
  /// The same for the format of `fit`.
  Classes classes_at(const FormatFit& fit, Subnormals subnormals, int k) const;
  /// Returns the classes at all 2^k, with index k - kFirstLog2Scale. Not stored, to save memory.
  std::vector<Classes> by_scale(const Target& target) const;
};

/// Returns true if all values are known to be binary16 numbers.
bool fits_as_is(const BoundedTable& table);

using LogSteps = std::set<std::pair<std::string, std::int64_t>>;

/// Results for one log.
struct LogFindings {
  LogFindings() = default;
  LogFindings(const LogFindings&) = default;
  LogFindings(LogFindings&&) noexcept = default;  // else vectors of them copy when they grow
  LogFindings& operator=(const LogFindings&) = default;
  LogFindings& operator=(LogFindings&&) = default;

  std::string name;
  std::filesystem::path source;           ///< path read from: `name`, except for logs in a record
  std::optional<log::Manifest> manifest;  ///< empty if it is no run log
  /// Scalars of every selected step of a run log (rank 0's if there are ranks), or as far as
  /// another tool's log has them.
  std::deque<log::StepScalars> scalars;
  /// Also for steps without histograms. Peaks of whole roles that are 0 are dropped if they come
  /// from another tool's log: they add nothing to the scalars.
  std::vector<frames::StepPeak> peaks;
  /// For a log that is neither a run log nor tensor files: its kind, and what such logs lack.
  std::vector<frames::LogKind> kinds;
  std::vector<frames::SkippedSteps> skips;  ///< ranges of steps in which unknown ones were skipped
  bool quantised = false;  ///< the log has FP8 or FP4 statistics; frames/quantised.hpp
  bool clipped = false;    ///< weight gradients were clipped before they were recorded; clipped.hpp
  std::vector<TensorFindings> tensors;  ///< by role, then first appearance

  /// Returns true if gradients of this role were, or may have been, larger than recorded.
  bool was_clipped(log::Role role) const { return clipped && role == log::Role::weight_grad; }
};

/// The tensors of all logs, one log after the other.
class TensorRange {
 public:
  class Iterator {
   public:
    using value_type = TensorFindings;
    using difference_type = std::ptrdiff_t;
    using reference = const TensorFindings&;
    using pointer = const TensorFindings*;
    using iterator_category = std::forward_iterator_tag;

    Iterator() = default;
    Iterator(const LogFindings* log, const LogFindings* end) : log_(log), end_(end) { settle(); }
    reference operator*() const { return log_->tensors[at_]; }
    pointer operator->() const { return &**this; }
    Iterator& operator++() {
      ++at_;
      settle();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    /// Moves to the next tensor, or to the end.
    void settle() {
      for (; log_ != end_ && at_ == log_->tensors.size(); ++log_) at_ = 0;
    }

    const LogFindings* log_ = nullptr;
    const LogFindings* end_ = nullptr;
    std::size_t at_ = 0;
  };

  explicit TensorRange(const std::vector<LogFindings>& logs) : logs_(&logs) {}
  Iterator begin() const { return {logs_->data(), logs_->data() + logs_->size()}; }
  Iterator end() const { return {logs_->data() + logs_->size(), logs_->data() + logs_->size()}; }
  bool empty() const { return begin() == end(); }
  const TensorFindings& front() const { return *begin(); }
  std::size_t size() const;
  const TensorFindings& operator[](std::size_t index) const;
  std::size_t index_of(const TensorFindings& tensor) const;  ///< `tensor` must be one of these

 private:
  const std::vector<LogFindings>* logs_;
};

struct Analysis {
  Target target;
  double loss_scale = 1.0;
  std::vector<LogFindings> logs;  ///< in the given order; one entry per run
  frames::Notes notes;
  /// The results in bfloat16 are known for every step: no option named a format, no gradient is in
  /// binary16, and all scales are powers of two.
  bool known_in_bfloat16 = false;

  TensorRange tensors() const { return TensorRange(logs); }
  std::vector<std::string> names() const;  ///< names of the logs
  bool has_run_log() const;
};

/// Lets another analysis read a log in the same pass. Called before each log that may have more
/// than tensors, with its name; returns a visitor that receives the same data, each frame after
/// this analysis has read it.
using Companion = std::function<frames::Visitor(const std::string& log)>;

/// Analyzes the logs. `opened` keeps them open for later passes. Throws log::BadInput if a log
/// cannot be read or has no selected tensor.
Analysis analyze(const std::vector<std::filesystem::path>& logs, const Target& target,
                 const frames::Selection& selection, const frames::Progress& progress = {},
                 const Companion& companion = {}, const readers::Logs& opened = {});

/// Returns a tensor's name without its role: "fc.weight" for "weight/fc.weight".
std::string path_in(const std::string& name);

/// Returns the narrower of the types that a tensor is stored in and was computed in, as far as the
/// log or the values show; empty if unknown.
std::optional<Dtype> narrowest_dtype(const TensorFindings& tensor);

/// Returns the format in which a run keeps a weight, so that its updates are added, and may be
/// lost, in it: narrowest_dtype() of the weight's master copy if the log has one, else of the
/// weight.
std::optional<Dtype> kept_in(const LogFindings& log, const TensorFindings& weight);

/// Returns kept_in() if it is a 16-bit format, which updates are then rounded to; else empty.
std::optional<Dtype> kept_in_16_bits(const LogFindings& log, const TensorFindings& weight);

}  // namespace halfscope::analyzers::underflow
