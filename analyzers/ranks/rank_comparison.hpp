// SPDX-License-Identifier: Apache-2.0
// The ranks of a run side by side: which differ from the others, and by how much. The rule and its
// reasons: docs/numerics/statistics.md.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::ranks {

/// A rank differs by more binades than these, whatever the spread.
inline constexpr double kLeastBinades = 2;
/// Smaller shares of underflow are all alike.
inline constexpr double kLeastUnderflow = 0.001;
/// Fewer values of other ranks (ranks times steps) show no spread: one of two ranks is the lower
/// one at 12 steps in one of 2,048 runs.
inline constexpr std::size_t kLeastValues = 12;
/// Of numbers of which each rank has one, by so many times the median distance a rank differs: 5.4
/// standard deviations of a normal distribution.
inline constexpr double kSpreads = 8;
/// A run whose ranks have the same distribution has one that differs in at most such a share of
/// runs.
inline constexpr double kFalseAlarms = 0.001;

/// How far the largest of all ranks may lie by chance, where `typical` is the median over ranks of
/// the largest of `draws` values: were magnitudes as heavy in their tails as a power law.
double chance_limit(double typical, std::size_t ranks, std::size_t draws);

/// Gradients that are infinite or NaN at more steps than these are not those of a loss scale that
/// is probed: of all steps, and at the least. As of skipped steps:
/// scale_history/timeline_facts.hpp.
inline constexpr double kOftenShare = 0.05;
inline constexpr std::uint64_t kOften = 3;

struct Nonfinite {
  std::int64_t step = 0;
  bool nan = false;
};

/// What one rank's values are beside those of the others. Binades are above the median rank's.
struct RankValues {
  std::uint64_t rank = 0;
  std::uint64_t steps = 0;
  std::optional<double> max_abs;  ///< finite, unscaled; empty where no value is
  std::int64_t max_step = 0;
  std::optional<double> skew;    ///< of max_abs, over the median rank's, in binades
  std::optional<double> middle;  ///< the median over its steps; -infinity: zeros
  std::optional<double> peak;    ///< the most at one step; infinity: infinite or NaN
  std::int64_t peak_step = 0;    ///< the first of its column
  /// Where it peaks or departs: the first of the steps from which on it is beyond the limit at half
  /// of them or more.
  std::optional<std::int64_t> since;
  /// The first value that is infinite or NaN, unless it may be an FP16 overflow at a loss scale.
  std::optional<Nonfinite> nonfinite;
  std::optional<std::int64_t> overflow;    ///< the first step with one that may be
  std::uint64_t nonfinite_steps = 0;       ///< all of them
  std::uint64_t flushed = 0, nonzero = 0;  ///< values of recorded tensors

  // In what it differs.
  bool is_nonfinite = false;  ///< others are finite there
  bool overflows = false;     ///< is infinite or NaN at many more steps
  bool peaks = false;         ///< far above at some step
  bool departs = false;       ///< far above or below in most steps
  bool underflows = false;    ///< loses far more

  bool differs() const { return is_nonfinite || overflows || peaks || departs || underflows; }
  std::optional<double> underflow() const;
};

/// Binades above the median rank, the most of each cell: ranks by columns of steps.
struct RankMap {
  struct Row {
    std::uint64_t first = 0, last = 0;  ///< ranks
    std::vector<float> cells;           ///< NaN: no value
  };
  std::vector<std::int64_t> steps;  ///< first of each column
  std::int64_t last_step = 0;
  std::vector<Row> rows;  ///< by rank; few enough to be seen
};

/// All ranks, in the values of a role.
struct RankComparison {
  log::Role role = log::Role::unknown;  ///< weight gradients are local ones where the log has them
  std::vector<RankValues> ranks;        ///< ascending
  std::int64_t stride = 1;              ///< steps whose largest value counts as one
  /// Each rank has a part of its own of every tensor: magnitudes are not compared.
  bool parts = false;
  double peak_limit = 0, middle_limit = 0, underflow_limit = 0;  ///< binades; infinity: not judged
  std::optional<double> median_max_abs, median_underflow;        ///< over ranks
  std::uint64_t median_nonfinite_steps = 0;
  std::vector<std::size_t> worst;  ///< places in `ranks` of those that differ, worst first
  RankMap map;                     ///< empty where none differs

  bool differ() const { return !worst.empty(); }
  /// Whether magnitudes that differ would be seen.
  bool judged() const { return std::isfinite(peak_limit); }
};

/// Of one log of several ranks.
struct RankStudy {
  std::string log;
  std::uint64_t ranks = 0;
  std::vector<RankComparison> compared;

  bool differ() const;
  bool judged() const;
  /// Ranks that differ in any values.
  std::set<std::uint64_t> differing() const;
  /// Of the values in which a rank differs the most. Null where none does.
  const RankComparison* worst() const;
};

using ColumnKeys = std::vector<std::int64_t>;  ///< step / stride, ascending

/// Of one rank, as it is compared.
struct RankRow {
  RankValues values;
  std::uint64_t names = 0;                 ///< of its tensors, as a number; 0: it tells none
  std::shared_ptr<const ColumnKeys> keys;  ///< mostly those of the rank before
  std::vector<float> log2;                 ///< the largest magnitude of each; -infinity: 0
};

/// Empty for less than two ranks.
std::optional<RankComparison> compare(log::Role role, std::vector<RankRow>&& rows,
                                      std::int64_t stride, bool parts);

}  // namespace halfscope::analyzers::ranks
