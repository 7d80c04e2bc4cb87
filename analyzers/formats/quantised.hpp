// SPDX-License-Identifier: Apache-2.0
// Losses of a run in FP8 or FP4, as its framework measured them: the layers, since when, and which
// of them to keep in BF16.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/quantised.hpp"
#include "analyzers/frames/source.hpp"
#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::formats {

/// Limits for shares of underflow. NVIDIA BioNeMo's FP8 Training Analyzer calls less than the first
/// excellent, and 2 % and more critical.
inline constexpr std::array kUnderflowLimits = {0.005, 0.01, 0.02, 0.04};
/// A layer at kUnderflowLimits[kKeepLimit] is to be kept in BF16.
inline constexpr std::size_t kKeepLimit = 2;
/// Clipped shares from kUnderflowLimits[kClipLimit] on are reported.
inline constexpr std::size_t kClipLimit = 0;
/// A loss lasts if at least this share of a tensor's recorded steps, or its last kLastingAtEnd
/// steps, are at the limit. Up to kFirstSteps first steps do not count if others follow: delayed
/// scaling has no history there and loses nearly all.
inline constexpr double kLastingShare = 0.05;
inline constexpr std::uint64_t kLastingAtEnd = 3, kFirstSteps = 3;

/// Most columns of a heat map of layers and steps.
inline constexpr std::size_t kMostColumns = 400;

/// A step, and bounds of its number, which was printed rounded.
struct AtStep {
  std::int64_t step = 0;
  double low = 0, high = 0;
  double middle() const { return (low + high) / 2; }
};

/// The largest share of a tensor's elements that was lost in the steps of a column.
struct UnderflowCell {
  std::uint32_t column = 0;
  double share = 0;
};

/// Nonzero elements that became zero, as shares of all elements of a tensor.
struct QuantisedUnderflow {
  AtStep largest, last;  ///< among the steps that count
  /// The largest share of the first steps, if these do not count.
  std::optional<AtStep> at_first;
  std::uint64_t first_steps = 0;  ///< number of these first steps
  double median_low = 0, median_high = 0;
  std::uint64_t steps = 0;  ///< number of steps with a share
  /// By kUnderflowLimits: number of steps that are, or may be, at the limit or above. First steps
  /// that do not count are excluded.
  std::array<std::uint64_t, kUnderflowLimits.size()> steps_above{};
  /// By limit: start of the final run of steps at the limit; empty if the last step is below.
  std::array<std::optional<std::int64_t>, kUnderflowLimits.size()> since;
  std::array<std::uint64_t, kUnderflowLimits.size()> at_end{};  ///< number of steps in that run
  std::vector<UnderflowCell> cells;  ///< ascending; columns that have steps of the tensor

  /// Returns true if a loss at or above the limit lasts for more than a few steps.
  bool lasts(std::size_t limit) const;
};

/// One tensor of a layer, in one recipe and orientation.
struct QuantisedTensor {
  std::string layer, tensor;  ///< as in frames::QuantisedSeries
  log::Role role = log::Role::unknown;
  frames::Recipe recipe = frames::Recipe::own;
  bool columnwise = false;
  bool judged = false;  ///< the run used this recipe, as far as the log shows
  std::optional<QuantisedUnderflow> underflow;
  std::optional<AtStep> overflow;         ///< largest clipped share in the steps that count
  bool clips = false;                     ///< kUnderflowLimits[kClipLimit] or more lasts
  std::optional<AtStep> scale_inv_least;  ///< over all steps
  std::optional<AtStep> scale_inv_most;
  std::optional<AtStep> mse_largest, mse_last;

  std::string name() const;  ///< "model.layers.3.mlp.fc1_gradient"
};

/// Returns true if `a` lost more: a lasting loss precedes others, then the largest share decides.
/// Both must have shares.
bool lost_more(const QuantisedTensor& a, const QuantisedTensor& b);

/// Steps of a column of the heat map.
struct QuantisedColumn {
  std::int64_t first_step = 0, last_step = 0;
};

/// Losses of a layer's tensors, as indices into QuantisedLog::tensors.
struct LayerLoss {
  std::string layer;
  std::size_t worst = 0;             ///< tensor that lost most
  std::vector<std::size_t> lasting;  ///< tensors whose loss lasts at kKeepLimit
  bool at_first = false;   ///< a tensor reaches the limit in first steps that do not count
  std::size_t limits = 0;  ///< number of kUnderflowLimits at which a tensor's loss lasts
};

/// Losses that a recipe causes, or would cause, in the tensors measured with it.
struct RecipeLoss {
  frames::Recipe recipe = frames::Recipe::own;
  bool judged = false;
  std::size_t layers = 0, to_keep = 0;
  std::size_t worst = 0;  ///< index of the tensor that lost most
};

struct QuantisedLog {
  std::string log;
  std::uint64_t steps = 0;               ///< number of steps with statistics of any tensor
  std::vector<QuantisedColumn> columns;  ///< equal numbers of steps; at most kMostColumns
  std::vector<QuantisedTensor> tensors;  ///< by first appearance
  /// Layers with shares in a judged recipe, by first appearance.
  std::vector<LayerLoss> layers;
  std::vector<RecipeLoss> recipes;  ///< recipes with shares, in the order of Recipe

  /// Return the layers to keep in BF16, and those that reach the limit only for a few steps.
  std::vector<const LayerLoss*> to_keep() const;
  std::vector<const LayerLoss*> briefly() const;
  /// Returns the number of layers with a loss that lasts at the limit.
  std::size_t lasting_at(std::size_t limit) const;
  /// Returns the layer in `some` whose tensor lost most; null if `some` is empty.
  const LayerLoss* worst_of(const std::vector<const LayerLoss*>& some) const;
  /// Returns the judged tensor that clipped most, if its clipping lasts; else null.
  const QuantisedTensor* most_clipped() const;
  /// Returns the number of layers with a judged tensor that clips.
  std::size_t clipping_layers() const;
  const QuantisedUnderflow& underflow_of(const LayerLoss& layer) const {
    return *tensors[layer.worst].underflow;
  }
};

/// Returns the median; for an even number, the mean of the middle two. `values` must not be empty.
double median_of(std::vector<double> values);

/// Collects the FP8 and FP4 statistics of logs.
class QuantisedCollector {
 public:
  /// Sets the log that the following series belong to.
  void begin(const std::string& log) { log_ = log; }
  void add(const frames::QuantisedSeries& series);
  /// Returns one entry per log that has such statistics, in their order.
  std::vector<QuantisedLog> finish() &&;

 private:
  QuantisedTensor& tensor_of(const frames::QuantisedSeries& series);

  std::string log_;
  std::vector<QuantisedLog> logs_;
  std::map<std::string, std::size_t> places_;  // index in the last log's tensors
};

}  // namespace halfscope::analyzers::formats
