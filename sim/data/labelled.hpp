// SPDX-License-Identifier: Apache-2.0
// A set of examples in memory, each with a label.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "sim/data/data.hpp"

namespace halfscope::sim::data {

/// Pixels are kept as bytes, which is a quarter of the memory of the values they stand for.
struct Examples {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> labels;
};

struct LabelledFacts {
  std::string what;      ///< "scikit-learn digits"
  backend::Shape shape;  ///< (H, W, C)
  std::int64_t classes = 10;
  float factor = 1;  ///< a value is (byte - offset) * factor
  float offset = 0;
};

class Labelled : public Data {
 public:
  Labelled(LabelledFacts facts, Examples train, Examples test, std::uint64_t seed);
  /// Takes `held` of the examples, drawn by the seed, as the held-out part.
  static std::unique_ptr<Labelled> divided(LabelledFacts facts, const Examples& all,
                                           std::int64_t held, std::uint64_t seed);

  std::string describe() const override;
  std::int64_t classes() const override { return facts_.classes; }
  backend::Shape example() const override { return facts_.shape; }
  /// An epoch's last batch, were it smaller, is skipped.
  Batch batch(std::int64_t index, std::int64_t size) const override;
  std::vector<Batch> held_out(std::int64_t size) const override;

 private:
  Batch take(const Examples& from, std::span<const std::uint32_t> which) const;

  LabelledFacts facts_;
  Examples train_, test_;
  std::uint64_t seed_;
  /// The order of the last epoch asked for.
  mutable std::mutex guard_;
  mutable std::int64_t epoch_ = -1;
  mutable std::vector<std::uint32_t> order_;
};

}  // namespace halfscope::sim::data
