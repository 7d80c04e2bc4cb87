// SPDX-License-Identifier: Apache-2.0
// Two runs, tensor by tensor: FP32 against FP16, before against after. `halfscope compare`.
// Definitions: docs/compare.md.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/compare/compare_order.hpp"
#include "analyzers/compare/operations.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "halfscope/log/coded_tensors.hpp"
#include "halfscope/table/update/update_table.hpp"

namespace halfscope::analyzers::compare {

/// The same quantity of run A and of run B.
template <typename T>
struct Both {
  T a{}, b{};
};

/// Whole tensors of both runs, compared element by element, unscaled. The counts overlap: an
/// element may be equal and have become subnormal. Zeros of both signs are zeros.
struct ElementChanges {
  std::vector<std::int64_t> steps;  ///< steps at which both runs have the whole tensor
  bool exact = true;                ///< all scales are powers of two, so unscaling does not round
  std::uint64_t elements = 0;
  std::uint64_t equal = 0;             ///< the same value and sign; two NaN count as equal
  std::uint64_t became_zero = 0;       ///< finite and nonzero in A, zero in B
  std::uint64_t became_nonzero = 0;    ///< zero in A, finite and nonzero in B
  std::uint64_t became_subnormal = 0;  ///< normal in A, subnormal in B, in each run's own format
  std::uint64_t became_infinite = 0, became_nan = 0;  ///< finite in A
  std::uint64_t became_finite = 0;                    ///< infinite or NaN in A, finite in B
  std::uint64_t new_zeros = 0;                        ///< zero in B; nonzero, infinite or NaN in A
  /// Largest |b - a| / |a| over values finite in both runs and nonzero in A; empty if none.
  std::optional<double> largest_relative_error;
  /// Largest |b - a|, both multiplied by B's loss scale, in ulps of the target at A's value.
  std::optional<double> largest_ulps;

  ElementChanges& operator+=(const ElementChanges& other);
};

/// A tensor that one run stores as codes with scales, against the other run's values, over the
/// steps at which both have it whole. docs/compare.md.
struct BlockLoss {
  log::TensorBlocks layout = {};  ///< without factors
  std::uint64_t blocks = 0;
  std::uint64_t vanished = 0;  ///< all values zero, and some of the other run not
  std::uint64_t clipped = 0;   ///< some value is the block's largest, and the other run's beyond it
  /// Sums of squares of the other run's values and of the differences, where both are finite.
  double signal = 0, noise = 0;

  /// Returns the ratio in dB: infinite without noise, NaN if all values are zero.
  double signal_to_noise() const { return 10 * std::log10(signal / noise); }
  BlockLoss& operator+=(const BlockLoss& other);
};

/// Elements of one step that are zero in B and not in A.
struct StepZeros {
  std::int64_t step = 0;
  std::uint64_t total = 0;
  Interval new_zeros;
  bool whole = false;  ///< exact: compared element by element
};

/// One tensor over the steps that both runs have.
struct ComparedTensor {
  std::string name;  ///< role/path; --role can assign one role to different names of the runs
  log::Role role = log::Role::unknown;
  bool loss_scaled = false;  ///< a loss scale acts on it
  Both<std::size_t> index;   ///< index into the tensors of each Analysis
  std::vector<std::int64_t> steps;
  Both<std::vector<std::int64_t>> left_out;  ///< steps that only this run has
  Both<underflow::Counts> counts;
  Both<std::optional<double>> max_abs;  ///< unscaled, finite
  Both<std::vector<underflow::BinadeCount>> binades;
  std::int64_t zero_difference = 0;  ///< zeros of B minus zeros of A
  /// Elements that are zero in B and not in A: exact for steps whose whole tensors are in both
  /// logs, else bounds from the step's counts. Empty if the runs' tensors differ in size.
  std::optional<Interval> new_zeros;
  std::vector<StepZeros> zeros_at;  ///< each step's part of new_zeros
  /// Values lost to zero: values that the target format flushes. If the run was computed in FP16,
  /// flushed values are already zero; then also its zeros that the other run does not have.
  Both<Interval> lost;
  /// The zeros are most likely no underflow: they were made in a format with binary32's exponent
  /// range, and all nonzero values of both runs are kFarBinades or more above what it flushes.
  Both<bool> far;
  std::optional<int> smallest_log2;  ///< binade of both runs' smallest nonzero value, as counted
  Both<Interval> likely_lost;        ///< `lost` without zeros of `far` tensors; decides the verdict
  bool harmed = false;               ///< B is surely worse: docs/compare.md
  std::optional<double> max_abs_shift;  ///< log2(max_abs of B / max_abs of A)
  /// Binade of the median finite nonzero magnitude, B minus A; empty if not known exactly.
  std::optional<int> median_shift;
  /// Largest difference between the runs in the share of finite values (including zeros) below a
  /// power of two; empty if not known exactly.
  std::optional<double> largest_share_difference;
  std::optional<Both<UpdateCounts>> updates;
  /// Values that are NaN or infinite, or overflow; overflow does not count if `untouched`.
  Both<Interval> not_finite;
  Both<bool> untouched;    ///< own_format is set; the tensor was not computed in the target format
  Both<bool> wide_weight;  ///< own_updates is set, and the weight is wider than 16 bits
  Both<std::uint64_t> lost_updates, ineffective_updates;  ///< as in RunTotals, for this tensor
  std::optional<ElementChanges> elements;
  Both<std::optional<BlockLoss>> stored;  ///< empty for a run that does not store it as codes
  /// Elements whose difference no order of addition explains; empty if not requested.
  std::optional<std::uint64_t> sums_above;
};

/// Returns the number of values that are zero in the target format: recorded zeros, including true
/// zeros, and flushed values.
Interval lost_to_zero(const underflow::Counts& counts);
/// Returns the number of values that are NaN, infinite, or overflow in the target format.
Interval not_finite(const underflow::Counts& counts);

/// Tensors of one run, over all its steps, that hold non-finite or overflowing values.
struct AffectedTensors {
  std::uint64_t tensors = 0;
  std::uint64_t not_loss_scaled = 0;  ///< tensors among these that no loss scale acts on
  std::uint64_t steps = 0;
  std::int64_t first_step = 0, last_step = 0;
  std::string most;  ///< the tensor with the most such values, as role/path
  Interval values;
};

/// Totals of one run: from its scalars, and from the tensors and steps that both runs have.
struct RunTotals {
  underflow::Counts gradients;
  underflow::Counts all;       ///< tensors of every role
  Interval lost, likely_lost;  ///< sums over the gradients of ComparedTensor's
  /// not_finite() of the gradients, and of all tensors, without overflow in untouched tensors.
  Interval not_finite, not_finite_all;
  std::uint64_t lost_updates = 0;  ///< nonzero updates that did not change their weight
  /// lost_updates; plus zero updates beyond the other run's share, if they may be underflow.
  std::uint64_t ineffective_updates = 0;
  bool zero_updates_hide = false;  ///< some gradient or update may have become zero by underflow
  std::optional<Dtype> kept;       ///< narrowest dtype that weights with updates are kept in
  std::uint64_t tensors = 0;       ///< tensors of the run, compared or not
  std::optional<AffectedTensors> non_finite;  ///< NaN and infinity
  std::optional<AffectedTensors> overflow;    ///< finite values that overflow in the target format
  std::optional<std::int64_t> loss_non_finite;  ///< first step with a NaN or infinite loss
  /// Smallest and largest loss scale of the counts.
  std::optional<std::pair<double, double>> loss_scales;
  bool underflow_identifiable = true;  ///< true for every compared gradient
  std::optional<Dtype> computed;       ///< the coarsest dtype that its gradients were computed in
  bool in_target = false;              ///< some gradient was computed in the target format
  std::uint64_t steps = 0;             ///< steps that have scalars
  std::vector<std::pair<std::int64_t, double>> loss;    ///< ascending by step
  std::vector<std::pair<std::int64_t, double>> scales;  ///< loss scales, ascending by step
  std::vector<std::int64_t> skipped;                    ///< steps with found_inf set

  /// Return lost_to_zero() of the gradients, and not_finite() of the gradients and of all tensors.
  Interval lost_to_zero() const;
  Interval not_finite_values() const;
  Interval all_not_finite_values() const;
};

/// B's share compared with A's. unknown: no values, or overlapping bounds. similar: different, but
/// not by a real difference.
enum class Change : std::uint8_t { unknown, less, same, more, similar };
std::string_view name_of(Change change);

/// Compares the share a / of_a with the share b / of_b, exactly.
Change change_of(const Interval& a, std::uint64_t of_a, const Interval& b, std::uint64_t of_b);
/// As change_of(), but similar if the shares differ by less than a tenth of the larger and by less
/// than 0.1 percentage points, or are both below 0.01 %; and unknown if bounds nearly touch.
Change real_change_of(const Interval& a, std::uint64_t of_a, const Interval& b, std::uint64_t of_b);

struct CommonScalar {
  std::int64_t step = 0;
  double a = 0, b = 0;
};

/// The first differences between two runs, over the steps at which both have a loss or a scale.
struct FirstDifferences {
  std::uint64_t losses = 0;                 ///< steps at which both have a loss
  std::optional<std::int64_t> same_until;   ///< last step before the losses differ
  std::optional<std::int64_t> first_other;  ///< first step with different losses
  std::optional<std::int64_t> first_far;    ///< first step with losses that differ by > kFarLosses
  bool far_at_first = false;                ///< first_far is the first common step
  std::optional<std::int64_t> first_other_scale;
  bool other_scale_at_first = false;  ///< first_other_scale is the first common step
};
inline constexpr double kFarLosses = 0.01;  ///< relative to the larger magnitude

/// New zeros of the gradients at steps for which both runs have whole tensors.
struct WholeZeros {
  std::uint64_t steps = 0;
  std::uint64_t elements = 0;
  std::uint64_t new_zeros = 0;
};

struct Comparison {
  Both<std::string> logs;
  underflow::Target target;
  std::optional<double> loss_scale;  ///< loss scale of the counts; empty: each step's own
  /// One run computed gradients in the target format, the other computed them in a wider format,
  /// and counts are at each step's own scale. Each run is then judged in its own format; the counts
  /// still show what the target format would make of the values.
  bool own_format = false;
  /// Likewise for updates: a run keeps weights in 16 bits, and each run counts in its own format.
  bool own_updates = false;
  bool format_of_runs = false;          ///< the target is a run's own format; none was requested
  std::vector<ComparedTensor> tensors;  ///< worst first, then by the shift of their magnitudes
  Both<std::vector<std::string>> only;  ///< names of tensors that only this run has
  Both<RunTotals> runs;
  std::uint64_t gradients = 0;  ///< number of compared tensors that a loss scale acts on
  Change underflow = Change::unknown, overflow = Change::unknown;  ///< over the gradients
  /// In both runs every gradient has one size and holds flushed values as zeros. Their losses then
  /// differ by zero_difference, even if only bounds of the losses are known.
  bool zeros_tell = false;
  Change not_finite = Change::unknown;        ///< over tensors of every role
  std::int64_t zero_difference = 0;           ///< over the gradients
  std::optional<Interval> new_zeros;          ///< over the gradients
  std::optional<WholeZeros> whole_zeros;      ///< the part of new_zeros that is known exactly
  std::optional<Both<UpdateCounts>> updates;  ///< over all weights that have them
  /// change_of_updates() over all weights.
  Change ineffective_updates = Change::unknown;
  Change zero_updates = Change::unknown;  ///< share of updates that are zero
  std::optional<CommonScalar> last_loss;  ///< at the last step at which both have a loss
  FirstDifferences parting;
  Both<std::optional<Operations>> operations;  ///< compared with emulation; empty if not checked
  std::optional<OrderAsked> order_asked;
  std::vector<ComparedOrder> orders;  ///< verdicts on the requested sums, by name
  frames::Notes notes;
};

/// Compares analyses of one log each, for the same target. Throws log::BadInput if the runs have no
/// tensor, or no step of a tensor, in common.
Comparison compare(const underflow::Analysis& a, const underflow::Analysis& b,
                   const Both<frames::Selection>& selections);

/// Sets `elements` of the tensors that both logs have whole, makes `new_zeros` exact there, and
/// sets `orders` if requested. Throws log::BadInput.
void add_elements(Comparison& comparison, const underflow::LogFindings& a,
                  const underflow::LogFindings& b, const Both<frames::Selection>& selections,
                  const frames::Progress& progress = {}, const readers::Logs& opened = {});

/// Compares two logs. The result's notes include those of reading. If one run's file shows that it
/// holds weights and the other's shows nothing, both hold weights. `sums`: describes the tensors'
/// elements if their order of addition is to be judged. Throws log::BadInput.
Comparison compare_logs(const std::filesystem::path& a, const std::filesystem::path& b,
                        const underflow::Target& target, Both<frames::Selection> selections,
                        const std::optional<OrderAsked>& sums = {},
                        const frames::Progress& progress = {});

/// Computes new zeros, lost values, the changes and the order of the tensors from counts and
/// zeros_at of every tensor.
void sum_up(Comparison& comparison, const underflow::LogFindings& a,
            const underflow::LogFindings& b);

/// If the smallest magnitudes are this many binades above what a format flushes, zeros are most
/// likely no underflow: docs/compare.md.
inline constexpr int kFarBinades = 24;

/// Returns log2 of the largest magnitude that rounding to the format makes zero.
constexpr int flushed_below_log2(Format format) { return format.min_quantum_exponent() - 1; }

/// Sets `far` and `smallest_log2` from the values that both runs recorded at the common steps.
void set_far(ComparedTensor& tensor, const Both<const underflow::TensorFindings*>& of);

/// Returns the change of `unmoved`. unknown if counting all zero updates as lost reverses the
/// answer: a run whose updates are zero loses fewer of them, but is not better.
Change change_of_updates(const Both<UpdateCounts>& updates,
                         const Both<std::uint64_t>& ineffective_updates,
                         const Both<std::uint64_t>& lost);

/// Sets `kept`, zero_updates_hide, lost_updates and `unmoved` of both runs and of every tensor.
void sum_unmoved(Comparison& comparison, const Both<const underflow::LogFindings*>& runs);

/// Sets the totals that come from one run's scalars.
void add_scalars(RunTotals& run, const underflow::LogFindings& log);

/// Sets last_loss and parting from the runs' scalars.
void set_parting(Comparison& comparison);

/// Sets the totals over all tensors and steps of one run; `own_format` as in Comparison.
void add_trouble(RunTotals& run, const underflow::LogFindings& log, bool own_format);

/// Returns the name by which tensors of two runs are matched: role/path.
std::string meeting_name(log::Role role, const std::string& name);

}  // namespace halfscope::analyzers::compare
