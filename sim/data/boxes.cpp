// SPDX-License-Identifier: Apache-2.0
// Generated images for detection: 1 to 4 rectangles of 3 kinds (plain, rows, chequers).
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "sim/data/generated.hpp"
#include "sim/data/sets.hpp"

namespace halfscope::sim::data {

using backend::Random;

namespace {

constexpr int kSide = 48, kLeast = 9, kMost = 25, kTries = 20;
constexpr std::uint32_t kBoxClasses = 3, kMostBoxes = 4;

/// A rectangle in pixels; right and bottom are exclusive.
struct Rectangle {
  int left, top, right, bottom;
  std::uint32_t label;
  std::array<float, 3> light, dark;
};

bool near(const Rectangle& a, const Rectangle& b) {
  return a.left < b.right + 2 && b.left < a.right + 2 && a.top < b.bottom + 2 &&
         b.top < a.bottom + 2;
}

int pick(Random& random, int low, int high) {
  return low + static_cast<int>(random.below(static_cast<std::uint32_t>(high - low + 1)));
}

Rectangle draw_rectangle(Random& random) {
  Rectangle made{};
  const int width = pick(random, kLeast, kMost), height = pick(random, kLeast, kMost);
  made.left = pick(random, 0, kSide - width);
  made.top = pick(random, 0, kSide - height);
  made.right = made.left + width;
  made.bottom = made.top + height;
  made.label = random.below(kBoxClasses);
  for (std::size_t c = 0; c < 3; ++c) {
    made.light[c] = static_cast<float>(random.uniform(0.4, 1));
    made.dark[c] = made.label == 0 ? made.light[c] : -made.light[c];
  }
  return made;
}

/// Returns the colour of a pixel; stripes and squares are 3 pixels wide.
const std::array<float, 3>& colour(const Rectangle& of, int x, int y) {
  const int row = (y - of.top) / 3 % 2, column = (x - of.left) / 3 % 2;
  const bool dark = of.label == 1 ? row == 1 : row != column;
  return dark ? of.dark : of.light;
}

class Boxes : public Generated {
 public:
  explicit Boxes(std::uint64_t seed) : Generated("boxes", kBoxClasses, {kSide, kSide, 3}, seed) {}
  std::string describe() const override {
    return "generated images with 1 to 4 boxes of 3 classes, 48 x 48, 3 channels";
  }

 protected:
  void draw(Random random, Batch& batch) const override {
    const std::uint32_t wanted = 1 + random.below(kMostBoxes);
    std::vector<Rectangle> all;
    for (int tries = 0; all.size() < wanted && tries < kTries; ++tries) {
      const Rectangle next = draw_rectangle(random);
      if (std::ranges::none_of(all, [&](const Rectangle& one) { return near(one, next); })) {
        all.push_back(next);
      }
    }
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const auto found = std::ranges::find_if(all, [&](const Rectangle& one) {
          return x >= one.left && x < one.right && y >= one.top && y < one.bottom;
        });
        for (std::size_t c = 0; c < 3; ++c) {
          const auto noise = static_cast<float>(random.uniform(-0.2, 0.2));
          batch.inputs.push_back(noise + (found == all.end() ? 0.0F : colour(*found, x, y)[c]));
        }
      }
    }
    std::vector<Box>& boxes = batch.boxes.emplace_back();
    for (const Rectangle& one : all) {
      constexpr auto share = [](int pixels) { return static_cast<float>(pixels) / kSide; };
      boxes.push_back({share(one.left), share(one.top), share(one.right), share(one.bottom),
                       static_cast<std::int32_t>(one.label)});
    }
  }
};

}  // namespace

std::unique_ptr<Data> generate_boxes(std::uint64_t seed) { return std::make_unique<Boxes>(seed); }

}  // namespace halfscope::sim::data
