// SPDX-License-Identifier: Apache-2.0
// What a run lost in FP8 or FP4, as its framework measured it: which layers, since when, and which
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

/// Shares that people judge underflow by: NVIDIA BioNeMo's FP8 Training Analyzer calls less than
/// the first excellent, and 2 % and more critical.
inline constexpr std::array kUnderflowLimits = {0.005, 0.01, 0.02, 0.04};
/// The one that decides whether a layer is to stay in BF16: kUnderflowLimits[kKeepLimit].
inline constexpr std::size_t kKeepLimit = 2;
/// The one that decides whether it is worth a finding that values are clipped.
inline constexpr std::size_t kClipLimit = 0;
/// Of a tensor's recorded steps so many must be at the limit, or its last ones. So many of the
/// first do not count where others follow: delayed scaling has no history there, and loses nearly
/// all.
inline constexpr double kLastingShare = 0.05;
inline constexpr std::uint64_t kLastingAtEnd = 3, kFirstSteps = 3;

/// Most columns of a heat map of layers and steps.
inline constexpr std::size_t kMostColumns = 400;

/// Where a number lies that was printed rounded, and the step it is of.
struct AtStep {
  std::int64_t step = 0;
  double low = 0, high = 0;
  double middle() const { return (low + high) / 2; }
};

/// The most that a tensor lost in the steps of a column, as a share of its elements.
struct UnderflowCell {
  std::uint32_t column = 0;
  double share = 0;
};

/// Elements that were not zero and became zero, as shares of all elements of a tensor.
struct QuantisedUnderflow {
  AtStep largest, last;  ///< the first of the largest, of the steps that count
  /// The largest of the first steps, where these do not count.
  std::optional<AtStep> at_first;
  std::uint64_t first_steps = 0;  ///< how many these are
  double median_low = 0, median_high = 0;
  std::uint64_t steps = 0;  ///< that have a share
  /// By kUnderflowLimits: steps at the limit or above, without first ones that do not count. A
  /// share that may be so counts.
  std::array<std::uint64_t, kUnderflowLimits.size()> steps_above{};
  /// The first of the steps that end in the last one and are all so; empty where the last is not.
  std::array<std::optional<std::int64_t>, kUnderflowLimits.size()> since;
  std::array<std::uint64_t, kUnderflowLimits.size()> at_end{};  ///< how many these are
  std::vector<UnderflowCell> cells;  ///< ascending; of columns with steps of it

  /// Whether it is at the limit for more than a few steps.
  bool lasts(std::size_t limit) const;
};

/// One tensor of a layer, in one recipe and orientation.
struct QuantisedTensor {
  std::string layer, tensor;  ///< frames::QuantisedSeries
  log::Role role = log::Role::unknown;
  frames::Recipe recipe = frames::Recipe::own;
  bool columnwise = false;
  bool judged = false;  ///< the run used this recipe, as far as the log shows
  std::optional<QuantisedUnderflow> underflow;
  std::optional<AtStep> overflow;  ///< the largest share that was clipped, of steps that count
  bool clips = false;  ///< kUnderflowLimits[kClipLimit] or more, for more than a few steps
  std::optional<AtStep> scale_inv_least;  ///< over the steps
  std::optional<AtStep> scale_inv_most;
  std::optional<AtStep> mse_largest, mse_last;

  std::string name() const;  ///< "model.layers.3.mlp.fc1_gradient"
};

/// Whether the first lost more: what lasts comes before what does not, then the largest share
/// decides. Both have shares.
bool lost_more(const QuantisedTensor& a, const QuantisedTensor& b);

/// Steps of a column of the heat map.
struct QuantisedColumn {
  std::int64_t first_step = 0, last_step = 0;
};

/// Places of QuantisedLog::tensors.
struct LayerLoss {
  std::string layer;
  std::size_t worst = 0;             ///< the tensor that lost most
  std::vector<std::size_t> lasting;  ///< tensors that are at the limit for more than a few steps
  bool at_first = false;   ///< some tensor reaches the limit at first steps that do not count
  std::size_t limits = 0;  ///< so many of kUnderflowLimits some tensor is at for more than that
};

/// What a recipe does, or would do, to the tensors that were measured in it.
struct RecipeLoss {
  frames::Recipe recipe = frames::Recipe::own;
  bool judged = false;
  std::size_t layers = 0, to_keep = 0;
  std::size_t worst = 0;  ///< place of the tensor that lost most
};

struct QuantisedLog {
  std::string log;
  std::uint64_t steps = 0;               ///< that have statistics of some tensor
  std::vector<QuantisedColumn> columns;  ///< steps in equal runs, at most kMostColumns
  std::vector<QuantisedTensor> tensors;  ///< by first appearance
  /// Layers with shares in a recipe that is judged; by first appearance.
  std::vector<LayerLoss> layers;
  std::vector<RecipeLoss> recipes;  ///< that have shares; in the order of Recipe

  /// Of these, those to keep in BF16; those that reach the limit for a few steps alone.
  std::vector<const LayerLoss*> to_keep() const;
  std::vector<const LayerLoss*> briefly() const;
  /// So many layers are at the limit in some tensor for more than a few steps.
  std::size_t lasting_at(std::size_t limit) const;
  /// Of some layers the one whose tensor lost most; null where there is none.
  const LayerLoss* worst_of(const std::vector<const LayerLoss*>& some) const;
  /// The judged tensor that clips and clipped most; null where none does.
  const QuantisedTensor* most_clipped() const;
  /// Layers with a judged tensor that clips.
  std::size_t clipping_layers() const;
  const QuantisedUnderflow& underflow_of(const LayerLoss& layer) const {
    return *tensors[layer.worst].underflow;
  }
};

/// Takes what logs tell.
class QuantisedCollector {
 public:
  /// What follows is of this log.
  void begin(const std::string& log) { log_ = log; }
  void add(const frames::QuantisedSeries& series);
  /// One a log that has such statistics, in their order.
  std::vector<QuantisedLog> finish() &&;

 private:
  QuantisedTensor& tensor_of(const frames::QuantisedSeries& series);

  std::string log_;
  std::vector<QuantisedLog> logs_;
  std::map<std::string, std::size_t> places_;  // in the last of these
};

}  // namespace halfscope::analyzers::formats
