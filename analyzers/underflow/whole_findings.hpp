// SPDX-License-Identifier: Apache-2.0
// Results from the whole tensors of one name: how well it fits each format (formats::WholePass,
// formats/format_fit.hpp), and the outcome of a weight's updates.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "halfscope/block/recipe.hpp"
#include "halfscope/table/binade_table.hpp"
#include "halfscope/table/count/count.hpp"
#include "halfscope/table/count/magnitude_sums.hpp"
#include "halfscope/table/update/update_table.hpp"
#include "halfscope/table/update/update_what_if.hpp"

namespace halfscope::analyzers::underflow {

/// Signal-to-quantisation-noise ratio in decibels: 10 log10(sum x^2 / sum (q - x)^2) over finite
/// nonzero values. Infinite if nothing is rounded (or by less than 2^-500 of the largest value).
struct NoiseRatio {
  double db = 0;
  double low_db = 0, high_db = 0;  ///< guaranteed bounds; 1e-11 around db if exact
  bool exact = false;              ///< from whole tensors; else an estimate from the histogram
};

/// One tensor in one format.
struct FormatFit {
  std::string_view format;
  bool saturating = false;  ///< an overflow becomes the largest finite value (FP8 casts)
  /// The largest k for which nothing overflows at scale 2^k. Empty if no value is finite and
  /// nonzero, or if no scale in range is surely small enough.
  std::optional<int> best_log2;
  /// Nothing overflows and the noise ratio is high enough (formats::FitOptions); for a saturating
  /// cast at scale 1, few values are clamped or flushed. False if infinities of values computed in
  /// binary16 hide how large they were (except at skipped steps), and if there is no value.
  bool fits_at_1 = false, fits_at_best = false;
  std::optional<NoiseRatio> noise_at_best;
};

/// The narrowest format that a tensor fits; formats/format_fit.hpp.
struct Narrowest {
  std::string_view format;
  bool needs_scale = false;
};

/// A product of a layer. `none`: the tensor is no operand, as the gradient of a weight.
enum class Product : std::uint8_t { forward, data_gradient, weight_gradient, none };

/// One tensor quantised by one recipe of block formats, as its values were recorded, with the loss
/// scale in them; from whole tensors only. The rows of a tensor are all its dimensions but the
/// last. Values are finite and nonzero.
struct RecipeFit {
  const block::Recipe* recipe = nullptr;
  std::string_view asked = {};      ///< name by which it was requested: formats::RecipeChoice
  bool columns = false;             ///< the blocks run down the columns
  Product product = Product::none;  ///< takes the tensor in this orientation as an operand
  /// The recipe does not allow the tensor's shape; nothing below is set.
  bool not_allowed = false;
  std::uint64_t values = 0, flushed_to_zero = 0;
  std::uint64_t saturated = 0;   ///< by more than half the last gap beyond the largest element
  std::uint64_t at_largest = 0;  ///< became the largest element
  /// Values that become infinity or NaN, or stand beside one in their block; counted only here.
  std::uint64_t in_nan_blocks = 0;
  std::optional<NoiseRatio> noise;
  /// The ratio and the share of zeros that the recipe has for 2^18 random numbers of a normal
  /// distribution, in rows of 1024.
  double normal_db = 0, normal_zero = 0;
  /// Mean of |q| - |x| in units of the gap from q to the next element on the side of x, and its
  /// standard error. Expected to be 0 for stochastic rounding of values that are not clipped.
  double bias = 0, bias_error = 0;

  /// Returns the share of the values that become zero.
  double zero_share() const {
    return values == 0 ? 0 : static_cast<double>(flushed_to_zero) / static_cast<double>(values);
  }
  /// Returns true for a bias of 1 % of a gap or more that is no chance: ten standard errors.
  bool biased() const { return std::abs(bias) >= 0.01 && std::abs(bias) > 10 * bias_error; }
};

struct WholeFindings {
  /// NaN and infinities of a gradient at steps that the log marks as skipped. The scale caused
  /// them, so they do not count against any format.
  std::uint64_t skipped_nan = 0, skipped_inf = 0;
  /// Fits to each of formats::kFitFormats.
  std::vector<FormatFit> fits;
  std::optional<Narrowest> narrowest;
  /// Flushed mass without a loss scale, and at Analysis::loss_scale if that is a power of two.
  std::optional<MassShare> lost_at_1, lost;
  std::vector<RecipeFit> mx_fits;         ///< formats::kMxRecipes, if the log has whole tensors
  std::vector<RecipeFit> recipe_fits;     ///< FitOptions::recipes, of roles that are quantised
  std::vector<std::int64_t> whole_steps;  ///< steps with exact noise from whole tensors; ascending
};

/// Origin of updates, in the order of preference.
enum class UpdateSource : std::uint8_t {
  update,           ///< recorded
  optimizer_state,  ///< momentum, Adam, AdamW: recomputed from recorded state
  gradient,         ///< plain SGD: weight, gradient and learning rate
  difference        ///< weight and weight_after: zero differences are undetermined
};
std::string_view name_of(UpdateSource source);
std::optional<UpdateSource> find_update_source(std::string_view name);

/// One weight over the sampled steps.
struct UpdateFindings {
  UpdateSource source = UpdateSource::update;
  std::optional<Dtype>
      kept_in;        ///< type that the weight itself is kept in; kept_in() in underflow.hpp
  UpdateTable table;  ///< sum over all steps, in the format chosen by AddedTo
  /// Zero differences: an update may have been lost or was zero. Not in table.counts.
  std::uint64_t undetermined = 0;
  std::vector<std::pair<std::int64_t, UpdateCounts>> per_step;  ///< ascending
  std::optional<UpdateWhatIf> what_if;
};

}  // namespace halfscope::analyzers::underflow
