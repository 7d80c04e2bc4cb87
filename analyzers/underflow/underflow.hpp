// SPDX-License-Identifier: Apache-2.0
// What rounding to a format would do to every tensor of a log: `halfscope analyze`.
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
#include "analyzers/underflow/update_findings.hpp"
#include "analyzers/underflow/whole_findings.hpp"
#include "halfscope/log/shared_text.hpp"
#include "halfscope/table/binade_table.hpp"
#include "halfscope/table/count/magnitude_sums.hpp"
#include "halfscope/table/rare.hpp"

namespace halfscope::analyzers::underflow {

/// Range of scales answered without being asked: 2^-24 to 2^40.
inline constexpr int kFirstLog2Scale = -24;
inline constexpr int kLastLog2Scale = 40;

/// What values are rounded to.
struct Target {
  std::string_view name = "binary16";
  Format format = kBinary16;
  /// Whether results below the smallest normal become zero, as hardware in flush-to-zero mode does.
  Subnormals subnormals = Subnormals::keep;
  /// Nobody asked for this format: a run in bfloat16 is judged in bfloat16 (study.hpp).
  bool by_default = false;

  /// Boundaries::nonzero is where values start that are not flushed.
  Boundaries boundaries(double loss_scale, double recorded_scale) const;
};

/// Tables of one tensor that carry the same scale, up to a power of two: added over steps.
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
  std::optional<Dtype> source_dtype;    ///< empty where the log does not say
  std::optional<Dtype> computed_dtype;  ///< as recorded, or what the source dtype implies
  bool suspected_fp16 = false;  ///< stored wide, but all values are one power of two from binary16
  bool zeros_may_be_flushed = false;   ///< computed in a format that flushes what the target does
  bool underflow_identifiable = true;  ///< whether zeros are surely zeros, or there are none
  /// A bucket of the log holds zero and values that FP16 keeps: what is flushed is not known, and
  /// underflow_identifiable is false.
  bool hidden_by_buckets = false;
  bool hidden_in_bfloat16 = false;  ///< the same of what bfloat16 keeps, where that may be asked
  bool loss_scaled = false;         ///< a loss scale acts on it; Frame::loss_scaled
  bool unscale_exact = true;
  std::vector<std::uint64_t> shape;  ///< of the last step

  Counts counts;                                   ///< at Analysis::loss_scale, over all steps
  std::optional<double> max_abs, min_abs_nonzero;  ///< unscaled, finite: the most, the least
  /// Where only bounds are known: the least that max_abs can be, the most that the other can be.
  std::optional<double> max_abs_at_least, min_abs_at_most;
  BinadeCounts binades;
  /// Of the nonzero values over all steps, the smallest: rounding errors of sums whose exact value
  /// is 0. They count in no target. rounding_noise.hpp sets it.
  std::uint64_t rounding_noise = 0;
  StepList per_step;                ///< ascending by step
  std::vector<ScaledTable> tables;  ///< all steps; what the numbers above come from

  /// What becomes of a weight's updates, where pairs were sampled; updates::UpdatePass.
  std::shared_ptr<const UpdateFindings> updates;
  Rare<WholeFindings> whole;
  /// Exact sums of the unscaled values, where every step's whole tensor is in the log.
  Rare<std::optional<PackedSums>> sums;

  /// `count` of its values, the smallest of the nonzero ones first, without rounding_noise.
  Interval without_noise(const Interval& count) const;
  /// Whether its values were computed in binary16, as far as the log or the values tell: then a
  /// zero may stand for a value of at most 2^-25 over the scale, an infinity for one of 65520 or
  /// more.
  bool computed_in_fp16() const;
  /// The classes that rounding to `target` makes of its values at loss scale 2^k, any k.
  Classes classes_at(const Target& target, int k) const;
  /// The same in a fit's format.
  Classes classes_at(const FormatFit& fit, Subnormals subnormals, int k) const;
  /// Entry k - kFirstLog2Scale: those at 2^k. Not kept, since a log may have a million tensors.
  std::vector<Classes> by_scale(const Target& target) const;
};

/// Whether all values of a table are binary16's as they are, as far as is known.
bool fits_as_is(const BoundedTable& table);

using LogSteps = std::set<std::pair<std::string, std::int64_t>>;

/// What one log holds.
struct LogFindings {
  LogFindings() = default;
  LogFindings(const LogFindings&) = default;
  LogFindings(LogFindings&&) noexcept = default;  // else vectors of them copy where they grow
  LogFindings& operator=(const LogFindings&) = default;
  LogFindings& operator=(LogFindings&&) = default;

  std::string name;
  std::filesystem::path source;           ///< where it is read: `name`, but of a record
  std::optional<log::Manifest> manifest;  ///< of a run log
  /// Of every selected step of a run log, rank 0's where there are ranks; of another tool's log
  /// what it tells.
  std::deque<log::StepScalars> scalars;
  /// Also of steps without tables. Of another tool's log those of whole roles that are 0 are left
  /// out: they tell no more than the scalars.
  std::vector<frames::StepPeak> peaks;
  /// Of what is neither a run log nor tensors: what it cannot tell. Empty of these.
  std::vector<frames::LogKind> kinds;
  std::vector<frames::SkippedSteps> skips;  ///< steps of which some were skipped, not known which
  bool quantised = false;  ///< it has statistics of tensors in FP8 or FP4; frames/quantised.hpp
  bool clipped = false;    ///< weight gradients were clipped before they were recorded; clipped.hpp
  std::vector<TensorFindings> tensors;  ///< by role, then first appearance

  /// Whether gradients of this role were larger than is recorded, or may have been.
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
    /// To the next tensor, or the end.
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
  std::size_t index_of(const TensorFindings& tensor) const;  ///< one of these

 private:
  const std::vector<LogFindings>* logs_;
};

struct Analysis {
  Target target;
  double loss_scale = 1.0;
  std::vector<LogFindings> logs;  ///< as they were given; of several runs in one, one each
  frames::Notes notes;
  /// What bfloat16 would make of every step is known: nobody asked for a format, no gradient is in
  /// binary16, and all scales are powers of two.
  bool known_in_bfloat16 = false;

  TensorRange tensors() const { return TensorRange(logs); }
  std::vector<std::string> names() const;  ///< of the logs
  bool has_run_log() const;
};

/// Sees a log as it is read, so that it is read once: called before it with the name of each log
/// that may have more than tensors, gives a visitor that is told what the analysis is told, the
/// frame left as it is.
using Companion = std::function<frames::Visitor(const std::string& log)>;

/// opened: the logs, for passes that read them after this one. Throws log::BadInput when a log
/// cannot be read, or holds no tensor that is selected.
Analysis analyze(const std::vector<std::filesystem::path>& logs, const Target& target,
                 const frames::Selection& selection, const frames::Progress& progress = {},
                 const Companion& companion = {}, const readers::Logs& opened = {});

}  // namespace halfscope::analyzers::underflow
