// SPDX-License-Identifier: Apache-2.0
// Generated data sets with one label per example: clusters of points, and images of shapes.
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "sim/data/generated.hpp"
#include "sim/data/sets.hpp"

namespace halfscope::sim::data {

using backend::Random;

namespace {

constexpr std::uint32_t kShapeClasses = 10;

/// Normal clusters of deviation 1 around centres of deviation 0.5 in 32 dimensions. Some points are
/// nearer to another cluster's centre.
class Blobs : public Generated {
 public:
  explicit Blobs(std::uint64_t seed) : Generated("blobs", kShapeClasses, {1, 1, kWidth}, seed) {
    Random random(seed, "data/blobs/centres");
    for (auto& centre : centres_) {
      for (double& value : centre) value = 0.5 * random.normal();
    }
  }
  std::string describe() const override {
    return "generated clusters, 10 classes in 32 dimensions";
  }

 protected:
  void draw(Random random, Batch& batch) const override {
    const std::uint32_t label = random.below(kShapeClasses);
    batch.labels.push_back(static_cast<std::int32_t>(label));
    for (const double centre : centres_[label]) {
      batch.inputs.push_back(static_cast<float>(centre + random.normal()));
    }
  }

 private:
  static constexpr std::size_t kWidth = 32;
  std::array<std::array<double, kWidth>, kShapeClasses> centres_{};
};

/// Returns true if (x, y) is in shape `label`. The shape extends from -1 to 1.
bool inside(std::uint32_t label, double x, double y) {
  const double radius = std::sqrt(x * x + y * y), side = std::max(std::abs(x), std::abs(y));
  if (side > 1) return false;
  switch (label) {
    case 0: return radius <= 1;                                                  // disk
    case 1: return radius <= 1 && radius >= 0.6;                                 // ring
    case 2: return true;                                                         // square
    case 3: return side >= 0.6;                                                  // frame
    case 4: return std::abs(x) <= (y + 1) / 2;                                   // triangle
    case 5: return std::min(std::abs(x), std::abs(y)) <= 0.3;                    // plus
    case 6: return std::abs(std::abs(x) - std::abs(y)) <= 0.3;                   // cross
    case 7: return std::fmod(y + 1, 0.8) < 0.4;                                  // rows
    case 8: return std::fmod(x + 1, 0.8) < 0.4;                                  // columns
    default: return (std::fmod(x + 1, 1) < 0.5) == (std::fmod(y + 1, 1) < 0.5);  // chequers
  }
}

class Images : public Generated {
 public:
  explicit Images(std::uint64_t seed)
      : Generated("images", kShapeClasses, {kSide, kSide, 3}, seed) {}
  std::string describe() const override {
    return "generated images of 10 shapes, 32 x 32, 3 channels";
  }

 protected:
  void draw(Random random, Batch& batch) const override {
    const std::uint32_t label = random.below(kShapeClasses);
    batch.labels.push_back(static_cast<std::int32_t>(label));
    const double extent = random.uniform(7, 13);
    const double middle_x = random.uniform(extent, kSide - extent);
    const double middle_y = random.uniform(extent, kSide - extent);
    std::array<double, 3> ground{}, shape{};
    for (std::size_t c = 0; c < 3; ++c) {
      ground[c] = random.uniform(-1, 1);
      // Differs from the background by at least 0.4, in the direction with the larger range.
      const double away = random.uniform(0.4, 1);
      shape[c] = ground[c] > 0 ? ground[c] - away : ground[c] + away;
    }
    for (std::int64_t y = 0; y < kSide; ++y) {
      for (std::int64_t x = 0; x < kSide; ++x) {
        const bool in = inside(label, (static_cast<double>(x) + 0.5 - middle_x) / extent,
                               (static_cast<double>(y) + 0.5 - middle_y) / extent);
        for (std::size_t c = 0; c < 3; ++c) {
          const double noise = random.uniform(-0.3, 0.3);
          batch.inputs.push_back(static_cast<float>((in ? shape[c] : ground[c]) + noise));
        }
      }
    }
  }

 private:
  static constexpr std::int64_t kSide = 32;
};

}  // namespace

std::unique_ptr<Data> generate_blobs(std::uint64_t seed) { return std::make_unique<Blobs>(seed); }
std::unique_ptr<Data> generate_images(std::uint64_t seed) { return std::make_unique<Images>(seed); }

}  // namespace halfscope::sim::data
