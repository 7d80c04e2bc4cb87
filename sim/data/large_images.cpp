// SPDX-License-Identifier: Apache-2.0
// Images of ImageNet's size for timing networks: a colour with noise. They are generated once, so
// that making a batch is only a copy.
#include <algorithm>
#include <vector>

#include "halfscope/log/error.hpp"
#include "sim/backend/random.hpp"
#include "sim/data/sets.hpp"

namespace halfscope::sim::data {
namespace {

constexpr std::int64_t kLargeImages = 64, kImageSide = 224, kChannels = 3, kImageNetClasses = 1000;
constexpr std::int64_t kImage = kImageSide * kImageSide * kChannels;

class LargeImages : public Data {
 public:
  explicit LargeImages(std::uint64_t seed) {
    backend::Random random(seed, "data/large-images");
    pixels_.reserve(kLargeImages * kImage);
    for (std::int64_t i = 0; i < kLargeImages; ++i) {
      labels_.push_back(static_cast<std::int32_t>(random.below(kImageNetClasses)));
      const double ground = random.uniform(-1, 1);
      for (std::int64_t k = 0; k < kImage; ++k) {
        pixels_.push_back(static_cast<float>(ground + random.uniform(-1, 1)));
      }
    }
  }

  std::string describe() const override {
    return "64 generated images, 224 x 224, 3 channels, labels of 1000 classes by chance";
  }
  std::int64_t classes() const override { return kImageNetClasses; }
  backend::Shape example() const override { return {kImageSide, kImageSide, kChannels}; }

  Batch batch(std::int64_t index, std::int64_t size) const override {
    if (size < 1) throw log::BadInput("large-images: a batch has 1 example or more");
    Batch made;
    made.shape = {size, kImageSide, kImageSide, kChannels};
    made.inputs.reserve(static_cast<std::size_t>(size * kImage));
    for (std::int64_t i = index * size; i < (index + 1) * size; ++i) {
      const std::int64_t image = i % kLargeImages;
      const auto first = pixels_.begin() + image * kImage;
      made.inputs.insert(made.inputs.end(), first, first + kImage);
      made.labels.push_back(labels_[static_cast<std::size_t>(image)]);
    }
    return made;
  }

  std::vector<Batch> held_out(std::int64_t) const override { return {}; }

 private:
  std::vector<float> pixels_;
  std::vector<std::int32_t> labels_;
};

}  // namespace

std::unique_ptr<Data> generate_large_images(std::uint64_t seed) {
  return std::make_unique<LargeImages>(seed);
}

}  // namespace halfscope::sim::data
