// SPDX-License-Identifier: Apache-2.0
// A data set in memory, with one label per example.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "sim/data/data.hpp"

namespace halfscope::sim::data {

/// Examples with pixels as bytes, a quarter of the memory of binary32 values.
struct Examples {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> labels;
};

struct LabelledFacts {
  std::string what;      ///< "scikit-learn digits"
  backend::Shape shape;  ///< (H, W, C)
  std::int64_t classes = 10;
  float factor = 1;  ///< value = (byte - offset) * factor
  float offset = 0;
};

class Labelled : public Data {
 public:
  Labelled(LabelledFacts facts, Examples train, Examples test, std::uint64_t seed);
  /// Creates a data set whose held-out part is `held` of the examples, drawn with the seed.
  static std::unique_ptr<Labelled> divided(LabelledFacts facts, const Examples& all,
                                           std::int64_t held, std::uint64_t seed);

  std::string describe() const override;
  std::int64_t classes() const override { return facts_.classes; }
  backend::Shape example() const override { return facts_.shape; }
  /// Skips an epoch's last batch if it has fewer than `size` examples.
  Batch batch(std::int64_t index, std::int64_t size) const override;
  std::vector<Batch> held_out(std::int64_t size) const override;

 private:
  Batch take(const Examples& from, std::span<const std::uint32_t> which) const;

  LabelledFacts facts_;
  Examples train_, test_;
  std::uint64_t seed_;
  /// Cache: the order of the examples in the epoch of the last call of batch().
  mutable std::mutex guard_;
  mutable std::int64_t epoch_ = -1;
  mutable std::vector<std::uint32_t> order_;
};

}  // namespace halfscope::sim::data
