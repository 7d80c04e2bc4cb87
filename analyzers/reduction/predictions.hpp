// SPDX-License-Identifier: Apache-2.0
// Predicts sums over more ranks or microbatches than a log has. Internal to reduction/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analyzers/reduction/reductions.hpp"
#include "analyzers/reduction/terms.hpp"

namespace halfscope::analyzers::reduction {

/// A random sample of the elements of all gradients at one step, with their addends:
/// [addend][element]. It is random so that no row or column of a matrix is preferred.
class Sample {
 public:
  /// Adds the elements of a tensor. A later step replaces the sample.
  void take(std::int64_t step, const Terms& terms);

  std::uint64_t elements() const { return elements_; }
  std::vector<std::span<const float>> addends() const;

 private:
  void halve();

  std::int64_t step_ = -1;
  std::uint64_t elements_ = 0;  ///< number of elements of the step
  std::uint64_t one_of_ = 1;    ///< one of this many elements is sampled; a power of two
  std::vector<std::uint64_t> places_;
  std::vector<std::vector<float>> addends_;
};

/// Predicts from the last step of each log. Its ranks are alike, so a ring is a sequential sum.
class Predictions {
 public:
  explicit Predictions(const ReductionOptions& asked) : asked_(asked) {}

  /// Adds the gradients of a step as addends, over ranks or over microbatches.
  void take(const std::string& log, std::int64_t step, const Terms& terms);
  bool empty() const { return samples_.empty(); }
  std::vector<Reduction> finish(const frames::Progress& progress) const;

 private:
  /// Log, kind of addends, number of addends.
  using Key = std::tuple<std::string, Over, std::uint64_t>;

  void predict_orders(const Key& key, std::uint64_t count, std::string_view format,
                      std::vector<Reduction>& to) const;

  const ReductionOptions& asked_;
  std::map<Key, Sample> samples_;
};

}  // namespace halfscope::analyzers::reduction
