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

/// Which sum: of gradients over ranks or microbatches, or one that a layer or the loop computes
/// from the elements of one tensor.
enum class Sum : std::uint8_t {
  gradient,
  bias_gradient,  ///< of the gradients of a layer's output, for each channel
  mean,           ///< of a normalization's input: its elements
  variance,       ///< the squares of their distances from the exact mean
  mean_square,    ///< of RMSNorm's input: the squares of its elements
  softmax,        ///< the denominator: exponentials of the distances from the largest
  gradient_norm   ///< the squares of a gradient's elements
};
std::string_view name_of(Sum sum);

/// Formats of accumulators.
inline constexpr std::array<std::string_view, 3> kAccumulators = {"binary16", "bfloat16",
                                                                  "binary32"};

/// From this relative L2 error on a sum needs FP32: 1 %, some five roundings of a bfloat16 value.
inline constexpr double kHarmfulError = 0.01;
/// A sum stalls if a tenth of it and of its additions is lost.
inline constexpr double kTenth = 0.1;

struct Asked {
  std::vector<Over> over = {kOver.begin(), kOver.end()};
  /// Empty: the format that is asked about, if sums can be computed in it.
  std::vector<std::string_view> formats = {kAccumulators.begin(), kAccumulators.end()};
  std::vector<Order> orders = {Order::sequential, Order::ring, Order::tree, Order::pairwise};
  bool gradient_norms = true;  ///< long sums, which take long
  /// Numbers of ranks or microbatches to predict, of several formats in the narrow ones.
  std::vector<std::uint64_t> counts = {};
};

/// One kind of sum of one tensor, over all steps at which the tensor was saved in full.
struct Reduction {
  std::string log;
  std::string name;  ///< the tensor whose elements are added; empty: all tensors of the log
  Sum sum = Sum::gradient;
  Over over = Over::ranks;
  std::uint64_t count = 0;  ///< addends of each sum
  std::string_view format;
  Order order = Order::sequential;
  Facts facts = {};
  /// The part of the addends' magnitudes that becomes zero when they are rounded to the format.
  double flushed_share = 0;
  /// A sum of more addends than were recorded, for the elements of the last step. Then `facts` has
  /// elements and additions alone.
  std::optional<Prediction> predicted = {};

  /// Results that are infinite, errors from kHarmfulError on, or a flushed share as large; of a
  /// prediction the upper ends.
  bool is_harmful() const;
  /// By the lower ends of a prediction, too.
  bool is_surely_harmful() const;
  /// A tenth is missing, since a tenth of the additions change nothing.
  bool stalls() const;
};

/// Adds up what whole tensors hold, while whole steps are read: log after log, step after step.
class ReductionPass {
 public:
  /// Refers to the first two.
  ReductionPass(underflow::Analysis& analysis, const frames::Selection& selection,
                const Asked& asked);
  ~ReductionPass();
  ReductionPass(const ReductionPass&) = delete;
  ReductionPass& operator=(const ReductionPass&) = delete;

  void begin(const underflow::LogFindings& log);
  /// The ranks' local gradients at one step.
  void take(std::span<const frames::WholeStep> ranks);
  /// One rank's tensors whose elements are summed. Each is passed on, for others that need it.
  void take(const frames::WholeStep& step, const frames::TakeLoaded& beside);
  void finish_log();
  /// After the last one: makes the predictions, too. Called once.
  std::vector<Reduction> finish(const frames::Progress& predicting);

 private:
  struct OfLog;

  underflow::Analysis& analysis_;
  const frames::Selection& selection_;
  Asked asked_;
  std::unique_ptr<OfLog> log_;
  std::unique_ptr<Predictions> predictions_;
  std::vector<Reduction> found_;
};

}  // namespace halfscope::analyzers::reduction
