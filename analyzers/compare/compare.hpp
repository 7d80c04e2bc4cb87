// SPDX-License-Identifier: Apache-2.0
// Two runs, tensor by tensor: FP32 against FP16, before against after. `halfscope compare`.
// Definitions: docs/compare.md.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/compare/compare_order.hpp"
#include "analyzers/compare/operations.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "halfscope/table/update/update_table.hpp"

namespace halfscope::analyzers::compare {

/// The same of both runs.
template <typename T>
struct Both {
  T a{}, b{};
};

/// Whole tensors of both runs, element by element, unscaled. The counts are not apart: an element
/// may be equal and have become subnormal. Zeros of both signs are zeros.
struct ElementChanges {
  std::vector<std::int64_t> steps;  ///< at which both have the whole tensor
  bool exact = true;                ///< all scales are powers of two: nothing is rounded here
  std::uint64_t elements = 0;
  std::uint64_t equal = 0;             ///< the same value and sign; two NaN count as equal
  std::uint64_t became_zero = 0;       ///< finite and nonzero in A, zero in B
  std::uint64_t became_nonzero = 0;    ///< zero in A, finite and nonzero in B
  std::uint64_t became_subnormal = 0;  ///< of the format each run computed in; normal in A
  std::uint64_t became_infinite = 0, became_nan = 0;  ///< finite in A
  std::uint64_t became_finite = 0;                    ///< infinite or NaN in A
  std::uint64_t new_zeros = 0;                        ///< zero in B and not in A, whatever A has
  /// |b - a| / |a| over values finite in both, A's nonzero; empty where there are none.
  std::optional<double> largest_relative_error;
  /// |b - a| in ulps that the target has at A's value times the scale B's values carry.
  std::optional<double> largest_ulps;

  ElementChanges& operator+=(const ElementChanges& other);
};

/// Elements of one step that are zero in B and not in A.
struct StepZeros {
  std::int64_t step = 0;
  std::uint64_t total = 0;
  Interval new_zeros;
  bool whole = false;  ///< looked at element by element
};

/// One tensor over the steps that both runs have.
struct ComparedTensor {
  std::string name;  ///< role/path: --role may give the runs' names one role
  log::Role role = log::Role::unknown;
  bool loss_scaled = false;  ///< a loss scale acts on it
  Both<std::size_t> index;   ///< into the tensors of each Analysis
  std::vector<std::int64_t> steps;
  Both<std::vector<std::int64_t>> left_out;  ///< steps that only this run has
  Both<underflow::Counts> counts;
  Both<std::optional<double>> max_abs;  ///< unscaled, finite
  Both<std::vector<underflow::BinadeCount>> binades;
  std::int64_t zero_difference = 0;  ///< zeros of B less zeros of A
  /// Elements that are zero in B and not in A: exact for steps whose whole tensors are in both,
  /// else bounds from the step's counts. Empty where the runs' tensors differ in size.
  std::optional<Interval> new_zeros;
  std::vector<StepZeros> zeros_at;  ///< what new_zeros sums
  /// Values lost to zero: flushed in the target format; and where the run was computed in FP16, so
  /// that what it flushed is zero already, its zeros that the other run does not have.
  Both<Interval> lost;
  /// Its zeros were made in a format of binary32's exponent range, and every nonzero value that
  /// either run recorded of it is kFarBinades or more above what that format flushes.
  Both<bool> far;
  std::optional<int> smallest_log2;  ///< the binade of the smallest of these values, as counted
  Both<Interval> likely_lost;  ///< lost without the zeros where `far`: what the verdict rests on
  bool harmed = false;         ///< B surely worse: docs/compare.md
  std::optional<double> max_abs_shift;  ///< log2 of max_abs of B over that of A
  /// The binade that holds the median finite nonzero magnitude, B's less A's; empty where it is not
  /// known exactly.
  std::optional<int> median_shift;
  /// Largest difference between the runs in the share of finite values (zeros among them) below
  /// some power of two; empty where it is not known exactly.
  std::optional<double> largest_share_difference;
  std::optional<Both<UpdateCounts>> updates;
  /// Values that are NaN or infinite, or overflow; not the latter where `untouched`.
  Both<Interval> not_finite;
  Both<bool> untouched;    ///< Comparison::own_format, and not computed in the target format
  Both<bool> wide_weight;  ///< Comparison::own_updates, and the weight is not kept in 16 bits
  Both<std::uint64_t> lost_updates, unmoved;  ///< as in RunTotals, of its updates
  std::optional<ElementChanges> elements;
  /// Elements whose difference no order of addition explains; empty where that was not asked.
  std::optional<std::uint64_t> sums_above;
};

/// Values that are zero in the target format: zero already, true zeros among them, or flushed.
Interval lost_to_zero(const underflow::Counts& counts);
/// NaN, infinite, or overflowing in the target format.
Interval not_finite(const underflow::Counts& counts);

/// Tensors of one run, at all its steps, in which something happened.
struct Trouble {
  std::uint64_t tensors = 0;
  std::uint64_t beside_gradients = 0;  ///< tensors of these that no loss scale acts on
  std::uint64_t steps = 0;
  std::int64_t first_step = 0, last_step = 0;
  std::string most;  ///< the tensor with most of it, as role/path
  Interval values;
};

/// What one run's scalars say, and its values over the tensors and steps that both have.
struct RunTotals {
  underflow::Counts gradients;
  underflow::Counts all;       ///< tensors of every role
  Interval lost, likely_lost;  ///< of the gradients, as in ComparedTensor
  /// not_finite() of the gradients, and of all; of tensors that are untouched nothing overflows.
  Interval not_finite, not_finite_all;
  std::uint64_t lost_updates = 0;  ///< not zero, and left their weight as it is
  /// lost_updates, and where zeros may be updates that underflowed, those beyond the other run's.
  std::uint64_t unmoved = 0;
  bool zero_updates_hide = false;     ///< some gradient or update may have become zero by underflow
  std::optional<Dtype> kept;          ///< the narrowest that weights with updates are kept in
  std::uint64_t tensors = 0;          ///< of the run, compared or not
  std::optional<Trouble> non_finite;  ///< NaN and infinity
  std::optional<Trouble> overflow;    ///< finite values that overflow in the target format
  std::optional<std::int64_t> loss_non_finite;           ///< first step
  std::optional<std::pair<double, double>> loss_scales;  ///< least and largest that counts are for
  bool underflow_identifiable = true;                    ///< of every compared gradient
  std::optional<Dtype> computed;  ///< the coarsest dtype that its gradients were computed in
  bool in_target = false;         ///< some gradient was computed in the target format
  std::uint64_t steps = 0;        ///< that have scalars
  std::vector<std::pair<std::int64_t, double>> loss;    ///< ascending by step
  std::vector<std::pair<std::int64_t, double>> scales;  ///< loss scales, likewise
  std::vector<std::int64_t> skipped;                    ///< found_inf

  /// lost_to_zero() of the gradients; not_finite() of them, and of all.
  Interval lost_to_zero() const;
  Interval not_finite_values() const;
  Interval all_not_finite_values() const;
};

/// How B's share stands to A's. unknown: no values, or only bounds are known and they overlap.
/// similar: other, but no real difference.
enum class Change : std::uint8_t { unknown, less, same, more, similar };
std::string_view name_of(Change change);

/// a's share of all against b's, exactly.
Change change_of(const Interval& a, std::uint64_t of_a, const Interval& b, std::uint64_t of_b);
/// The same, but similar where the shares differ by less than a tenth of the larger and less than
/// 0.1 percentage points, or are both below 0.01 %.
Change real_change_of(const Interval& a, std::uint64_t of_a, const Interval& b, std::uint64_t of_b);

struct CommonScalar {
  std::int64_t step = 0;
  double a = 0, b = 0;
};

/// How long two runs stay together, over the steps at which both have a loss, or a loss scale.
struct Parting {
  std::uint64_t losses = 0;                 ///< steps at which both have one
  std::optional<std::int64_t> same_until;   ///< the losses are the same number from the first on
  std::optional<std::int64_t> first_other;  ///< the first step where they are not
  std::optional<std::int64_t> first_far;    ///< where they differ by more than kFarLosses
  bool far_at_first = false;                ///< first_far is the first step that both have
  std::optional<std::int64_t> first_other_scale;
  bool other_scale_at_first = false;  ///< first_other_scale is the first step that both have
};
inline constexpr double kFarLosses = 0.01;  ///< of the larger magnitude

/// New zeros of the gradients where both runs have whole tensors.
struct WholeZeros {
  std::uint64_t steps = 0;
  std::uint64_t elements = 0;
  std::uint64_t new_zeros = 0;
};

struct Comparison {
  Both<std::string> logs;
  underflow::Target target;
  std::optional<double> loss_scale;  ///< counts are for; empty: each step's own
  /// One run computed gradients in the target format, the other, in a wider one, did not, and
  /// counts are at each step's own scale: each is judged in what it computed in. Counts stay what
  /// the target format would make of the values.
  bool own_format = false;
  /// Likewise of updates: some run keeps weights in 16 bits, and updates count in what each keeps.
  bool own_updates = false;
  bool format_of_runs = false;          ///< nobody asked for the target: a run computed in it
  std::vector<ComparedTensor> tensors;  ///< worst first, then by how far the magnitudes moved
  Both<std::vector<std::string>> only;  ///< tensors of one run
  Both<RunTotals> runs;
  std::uint64_t gradients = 0;  ///< tensors compared that a loss scale acts on
  Change underflow = Change::unknown, overflow = Change::unknown;  ///< of the gradients
  /// In both runs every gradient holds as zeros what was flushed, and has one size: what they lost
  /// differs by zero_difference, also where only bounds of it are known.
  bool zeros_tell = false;
  Change not_finite = Change::unknown;        ///< of the tensors of every role
  std::int64_t zero_difference = 0;           ///< of the gradients
  std::optional<Interval> new_zeros;          ///< of the gradients
  std::optional<WholeZeros> whole_zeros;      ///< the part of new_zeros that is known exactly
  std::optional<Both<UpdateCounts>> updates;  ///< of all weights that have them
  /// change_of_updates() of all weights.
  Change unmoved = Change::unknown;
  Change zero_updates = Change::unknown;  ///< updates that are zero
  std::optional<CommonScalar> last_loss;  ///< at the last step for which both have one
  Parting parting;
  Both<std::optional<Operations>> operations;  ///< against their emulation, where checked
  std::optional<OrderAsked> order_asked;
  std::vector<ComparedOrder> orders;  ///< of these sums, by name
  frames::Notes notes;
};

/// Of analyses of one log each, for the same target. Throws log::BadInput where the runs have no
/// tensor, or no step of one, in common.
Comparison compare(const underflow::Analysis& a, const underflow::Analysis& b,
                   const Both<frames::Selection>& selections);

/// Sets `elements` of the tensors that both logs have whole, and makes `new_zeros` exact there; and
/// `orders`, where they are asked for. Throws log::BadInput.
void add_elements(Comparison& comparison, const underflow::LogFindings& a,
                  const underflow::LogFindings& b, const Both<frames::Selection>& selections,
                  const frames::Progress& progress = {}, const readers::Logs& opened = {});

/// All of it, from the logs. Its notes are those of reading, too. sums: what the tensors' elements
/// are sums of, where their order is asked about. Throws log::BadInput.
Comparison compare_logs(const std::filesystem::path& a, const std::filesystem::path& b,
                        const underflow::Target& target, const Both<frames::Selection>& selections,
                        const std::optional<OrderAsked>& sums = {},
                        const frames::Progress& progress = {});

/// What follows from counts and zeros_at of every tensor: new zeros, lost values, the changes, and
/// the order of the tensors.
void sum_up(Comparison& comparison, const underflow::LogFindings& a,
            const underflow::LogFindings& b);

/// Smallest magnitudes are this far above what a format flushes where zeros are most likely no
/// underflow: docs/compare.md.
inline constexpr int kFarBinades = 24;

/// The power of two up to which rounding to the format makes zeros.
constexpr int flushed_below_log2(Format format) { return format.min_quantum_exponent() - 1; }

/// Sets `far` from the values that both runs recorded at the common steps.
void set_far(ComparedTensor& tensor, const Both<const underflow::TensorFindings*>& of);

/// Of `unmoved`; unknown where all zero updates would turn the answer round: of a run whose updates
/// are zeros fewer are lost, which does not make it the better one.
Change change_of_updates(const Both<UpdateCounts>& updates, const Both<std::uint64_t>& unmoved,
                         const Both<std::uint64_t>& lost);

/// Sets zero_updates_hide of both runs, and lost_updates and `unmoved` of every tensor and run.
void sum_unmoved(Comparison& comparison, const Both<const underflow::LogFindings*>& runs);

/// Sets what one run's scalars say.
void add_scalars(RunTotals& run, const underflow::LogFindings& log);

/// Sets last_loss and parting, from the runs' scalars.
void set_parting(Comparison& comparison);

/// Sets what is known of all tensors and steps of one run; `own_format` as above.
void add_trouble(RunTotals& run, const underflow::LogFindings& log, bool own_format);

/// The name under which tensors of two runs meet: role/path.
std::string meeting_name(log::Role role, const std::string& name);

}  // namespace halfscope::analyzers::compare
