// SPDX-License-Identifier: Apache-2.0
// Losses of a training run's sums in accumulators of few bits: sums over ranks, over
// microbatches, and over the elements of a tensor. docs/numerics/reductions.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/reduction/predict.hpp"
#include "halfscope/reduction/reduce.hpp"

namespace halfscope::analyzers::underflow {
struct Analysis;
struct LogFindings;
}  // namespace halfscope::analyzers::underflow

namespace halfscope::analyzers::reduction {

class Predictions;
using halfscope::reduction::Facts;
using halfscope::reduction::Order;

/// The kind of addends.
enum class Over : std::uint8_t { ranks, microbatches, elements };
inline constexpr std::array kOver = {Over::ranks, Over::microbatches, Over::elements};
std::string_view name_of(Over over);

/// The kind of sum: of gradients over ranks or microbatches, or computed by a layer or the training
/// loop from the elements of one tensor.
enum class Sum : std::uint8_t {
  gradient,
  bias_gradient,  ///< over the gradients of a layer's output, for each channel
  mean,           ///< over the elements of a normalization's input
  variance,       ///< over the squares of their distances from the exact mean
  mean_square,    ///< over the squares of the elements of RMSNorm's input
  softmax,        ///< the denominator: over exponentials of the distances from the largest
  gradient_norm   ///< over the squares of a gradient's elements
};
std::string_view name_of(Sum sum);

/// Formats of accumulators.
inline constexpr std::array<std::string_view, 3> kAccumulators = {"binary16", "bfloat16",
                                                                  "binary32"};

/// Relative L2 error from which on a sum needs FP32: 1 %, about five roundings of a bfloat16 value.
inline constexpr double kHarmfulError = 0.01;
/// A sum stalls if this share of its value and this share of its additions is lost.
inline constexpr double kTenth = 0.1;

struct ReductionOptions {
  std::vector<Over> over = {kOver.begin(), kOver.end()};
  /// Formats of the accumulator. Empty: the target format, if sums can be computed in it.
  std::vector<std::string_view> formats = {kAccumulators.begin(), kAccumulators.end()};
  std::vector<Order> orders = {Order::sequential, Order::ring, Order::tree, Order::pairwise};
  bool gradient_norms = true;  ///< also long sums over whole gradients, which are slow
  /// Numbers of ranks or microbatches to predict; in binary32 only if it is the sole format.
  std::vector<std::uint64_t> counts = {};
};

/// One kind of sum of one tensor, over all steps at which the tensor was saved in full.
struct Reduction {
  std::string log;
  std::string name;  ///< the tensor whose elements are added; empty: all tensors of the log
  Sum sum = Sum::gradient;
  Over over = Over::ranks;
  std::uint64_t count = 0;  ///< number of addends of each sum
  std::string_view format;
  Order order = Order::sequential;
  Facts facts = {};
  /// Share of the addends' magnitudes that becomes zero when addends are rounded to the format.
  double flushed_share = 0;
  /// The prediction for more addends than were recorded, from the elements of the last step. If it
  /// is set, `facts` has only elements and additions.
  std::optional<Prediction> predicted = {};

  /// Returns true if a result is infinite, or if the error or the flushed share is at least
  /// kHarmfulError. For a prediction its upper ends decide.
  bool is_harmful() const;
  /// As is_harmful(), but for a prediction its lower ends decide.
  bool is_surely_harmful() const;
  /// Returns true if a tenth of the sum is missing because a tenth of the additions change nothing.
  bool stalls() const;
};

/// Computes sums from whole tensors while whole steps are read, log after log and step after step.
class ReductionPass {
 public:
  /// The analysis and the selection must outlive this object.
  ReductionPass(underflow::Analysis& analysis, const frames::Selection& selection,
                const ReductionOptions& asked);
  ~ReductionPass();
  ReductionPass(const ReductionPass&) = delete;
  ReductionPass& operator=(const ReductionPass&) = delete;

  void begin(const underflow::LogFindings& log);
  /// Adds the ranks' local gradients at one step.
  void take(std::span<const frames::WholeStep> ranks);
  /// Adds one rank's tensors whose elements are summed. Calls `beside` with each loaded tensor.
  void take(const frames::WholeStep& step, const frames::TakeLoaded& beside);
  void finish_log();
  /// Makes the predictions and returns all sums. Must be called once, after the last log.
  std::vector<Reduction> finish(const frames::Progress& predicting);

 private:
  struct OfLog;

  underflow::Analysis& analysis_;
  const frames::Selection& selection_;
  ReductionOptions asked_;
  std::unique_ptr<OfLog> log_;
  std::unique_ptr<Predictions> predictions_;
  std::vector<Reduction> found_;
};

}  // namespace halfscope::analyzers::reduction
