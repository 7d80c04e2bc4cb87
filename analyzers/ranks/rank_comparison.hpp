// SPDX-License-Identifier: Apache-2.0
// Compares the ranks of a run: which differ from the others, and by how much. The rule and its
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

/// A rank differs only if it is more binades than this from the median rank.
inline constexpr double kLeastBinades = 2;
/// Shares of underflow below this count as equal.
inline constexpr double kLeastUnderflow = 0.001;
/// With fewer values of other ranks (ranks times steps) there is no measure of spread: one of two
/// ranks is the lower one at 12 steps in 1 of 2,048 runs.
inline constexpr std::size_t kLeastValues = 12;
/// A rank's number differs if its distance from the median exceeds this many median distances (5.4
/// standard deviations of a normal distribution).
inline constexpr double kSpreads = 8;
/// Greatest share of runs in which some rank is found to differ by chance, although all ranks have
/// the same distribution.
inline constexpr double kFalseAlarms = 0.001;

/// Returns the distance that the largest value of all ranks may have by chance, if magnitudes have
/// tails as heavy as a power law. `typical`: median over ranks of the largest of `draws` values.
double chance_limit(double typical, std::size_t ranks, std::size_t draws);

/// A rank overflows too often if it has this share of all steps, and at least kOften, more infinite
/// or NaN gradients than the median rank. Probing a loss scale makes fewer. For skipped steps see
/// scale_history/timeline_facts.hpp.
inline constexpr double kOftenShare = 0.05;
inline constexpr std::uint64_t kOften = 3;

struct Nonfinite {
  std::int64_t step = 0;
  bool nan = false;
};

/// The values of one rank, compared with the others. Binades are above the median rank's value.
struct RankValues {
  std::uint64_t rank = 0;
  std::uint64_t steps = 0;
  std::optional<double> max_abs;  ///< finite, unscaled; empty if no value is finite
  std::int64_t max_step = 0;
  std::optional<double> skew;    ///< log2 of max_abs over the median rank's
  std::optional<double> middle;  ///< median over its steps; -infinity: zeros
  std::optional<double> peak;    ///< largest at one step; infinity: infinite or NaN
  std::int64_t peak_step = 0;    ///< first step of that column
  /// The step where it begins to peak or depart: from here on it is beyond the limit at half of the
  /// steps or more.
  std::optional<std::int64_t> since;
  /// The first infinite or NaN value that no FP16 overflow at a loss scale can explain.
  std::optional<Nonfinite> nonfinite;
  std::optional<std::int64_t> overflow;    ///< first step with a value that it can explain
  std::uint64_t nonfinite_steps = 0;       ///< number of steps with infinities or NaN
  std::uint64_t flushed = 0, nonzero = 0;  ///< numbers of recorded values

  // Ways in which the rank differs from the others.
  bool is_nonfinite = false;  ///< infinite or NaN where others are finite
  bool overflows = false;     ///< infinite or NaN at many more steps
  bool peaks = false;         ///< far above at some step
  bool departs = false;       ///< far above or below in most steps
  bool underflows = false;    ///< loses a far larger share

  bool differs() const { return is_nonfinite || overflows || peaks || departs || underflows; }
  std::optional<double> underflow() const;
};

/// Heat map of ranks by columns of steps: the largest number of binades above the median rank.
struct RankMap {
  struct Row {
    std::uint64_t first = 0, last = 0;  ///< first and last rank
    std::vector<float> cells;           ///< NaN: no value
  };
  std::vector<std::int64_t> steps;  ///< first step of each column
  std::int64_t last_step = 0;
  std::vector<Row> rows;  ///< ascending by rank; at most kMapRows
};

/// All ranks compared by their values of one role.
struct RankComparison {
  log::Role role = log::Role::unknown;  ///< local weight gradients if the log has them
  std::vector<RankValues> ranks;        ///< ascending
  std::int64_t stride = 1;              ///< number of steps in a column
  /// Each rank has its own part of every tensor, so that magnitudes are not compared.
  bool parts = false;
  double peak_limit = 0, middle_limit = 0, underflow_limit = 0;  ///< binades; infinity: not judged
  std::optional<double> median_max_abs, median_underflow;        ///< over ranks
  std::uint64_t median_nonfinite_steps = 0;
  std::vector<std::size_t> worst;  ///< indices into `ranks` of ranks that differ, worst first
  RankMap map;                     ///< empty if no rank differs

  bool differ() const { return !worst.empty(); }
  /// Returns true if there are enough values to detect magnitudes that differ.
  bool judged() const { return std::isfinite(peak_limit); }
};

/// The comparisons for one log of several ranks.
struct RankStudy {
  std::string log;
  std::uint64_t ranks = 0;
  std::vector<RankComparison> compared;

  bool differ() const;
  bool judged() const;
  /// Returns the ranks that differ in values of any role.
  std::set<std::uint64_t> differing() const;
  /// Returns the comparison in which a rank differs most; null if no rank differs.
  const RankComparison* worst() const;
};

using ColumnKeys = std::vector<std::int64_t>;  ///< step / stride, ascending

/// One rank's values before the comparison.
struct RankRow {
  RankValues values;
  std::uint64_t names = 0;                 ///< hash of its tensors' names; 0: unknown
  std::shared_ptr<const ColumnKeys> keys;  ///< usually shared with the rank before
  std::vector<float> log2;                 ///< largest magnitude by key; -infinity: 0
};

/// Returns the comparison; empty for fewer than two ranks.
std::optional<RankComparison> compare(log::Role role, std::vector<RankRow>&& rows,
                                      std::int64_t stride, bool parts);

/// Most rows and columns of a map.
inline constexpr std::size_t kMapRows = 64, kMapColumns = 100;

/// Binades above the median rank: ranks by columns of steps; NaN if there is no value.
struct Matrix {
  ColumnKeys keys;
  std::vector<std::vector<float>> rows;
};

/// Returns the map. A cell for several values has the one farthest from the median rank.
RankMap map_of(const RankComparison& all, const Matrix& matrix);

}  // namespace halfscope::analyzers::ranks
