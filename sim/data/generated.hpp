// SPDX-License-Identifier: Apache-2.0
// Base class of data sets that are generated on demand. Training example n depends on the seed and
// n alone; no example is repeated in a later epoch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/backend/random.hpp"
#include "sim/data/data.hpp"

namespace halfscope::sim::data {

class Generated : public Data {
 public:
  Generated(std::string name, std::int64_t classes, backend::Shape shape, std::uint64_t seed)
      : seed_(seed), name_(std::move(name)), classes_(classes), shape_(std::move(shape)) {}

  std::int64_t classes() const override { return classes_; }
  backend::Shape example() const override { return shape_; }
  Batch batch(std::int64_t index, std::int64_t size) const override;
  std::vector<Batch> held_out(std::int64_t size) const override;

 protected:
  /// Appends one example to a batch. Implemented by each data set.
  virtual void draw(backend::Random random, Batch& batch) const = 0;

  std::uint64_t seed_;

 private:
  Batch draw_all(std::string_view part, std::int64_t first, std::int64_t count) const;

  std::string name_;
  std::int64_t classes_;
  backend::Shape shape_;
};

}  // namespace halfscope::sim::data
