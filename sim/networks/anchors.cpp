// SPDX-License-Identifier: Apache-2.0
#include "sim/networks/anchors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halfscope::sim::networks {

using data::Box;

namespace {

constexpr double kMatched = 0.5;
constexpr std::size_t kNegatives = 3;

Box box_of(const Anchor& anchor) {
  return {static_cast<float>(anchor.x - anchor.width / 2),
          static_cast<float>(anchor.y - anchor.height / 2),
          static_cast<float>(anchor.x + anchor.width / 2),
          static_cast<float>(anchor.y + anchor.height / 2), 0};
}

double area(const Box& box) {
  return std::max(0.0, double{box.right} - box.left) * std::max(0.0, double{box.bottom} - box.top);
}

}  // namespace

void add_anchors(std::int64_t height, std::int64_t width, double scale,
                 std::vector<Anchor>& anchors) {
  for (std::int64_t row = 0; row < height; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      for (const double ratio : kAnchorRatios) {
        anchors.push_back({(static_cast<double>(column) + 0.5) / static_cast<double>(width),
                           (static_cast<double>(row) + 0.5) / static_cast<double>(height),
                           scale * std::sqrt(ratio), scale / std::sqrt(ratio)});
      }
    }
  }
}

double overlap(const Box& a, const Box& b) {
  const Box both{std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
                 std::min(a.bottom, b.bottom), 0};
  const double shared = area(both), all = area(a) + area(b) - shared;
  return all > 0 ? shared / all : 0;
}

std::array<float, 4> encode(const Box& box, const Anchor& anchor) {
  const double width = double{box.right} - box.left, height = double{box.bottom} - box.top;
  return {static_cast<float>(((double{box.left} + box.right) / 2 - anchor.x) / anchor.width),
          static_cast<float>(((double{box.top} + box.bottom) / 2 - anchor.y) / anchor.height),
          static_cast<float>(std::log(width / anchor.width)),
          static_cast<float>(std::log(height / anchor.height))};
}

Box decode(std::span<const float, 4> offsets, const Anchor& anchor) {
  return box_of(
      {anchor.x + double{offsets[0]} * anchor.width, anchor.y + double{offsets[1]} * anchor.height,
       anchor.width * std::exp(double{offsets[2]}), anchor.height * std::exp(double{offsets[3]})});
}

std::vector<std::int32_t> match(std::span<const Anchor> anchors, std::span<const Box> truth) {
  std::vector<std::int32_t> matched(anchors.size(), -1);
  std::vector<double> best_of_anchor(anchors.size(), 0);
  std::vector<std::size_t> best_of_box(truth.size(), 0);
  for (std::size_t box = 0; box < truth.size(); ++box) {
    double best = -1;
    for (std::size_t i = 0; i < anchors.size(); ++i) {
      const double shared = overlap(box_of(anchors[i]), truth[box]);
      if (shared > best) {
        best = shared;
        best_of_box[box] = i;
      }
      if (shared >= kMatched && shared > best_of_anchor[i]) {
        best_of_anchor[i] = shared;
        matched[i] = static_cast<std::int32_t>(box);
      }
    }
  }
  for (std::size_t box = 0; box < truth.size(); ++box) {
    matched[best_of_box[box]] = static_cast<std::int32_t>(box);
  }
  return matched;
}

std::vector<std::size_t> hardest(std::span<const std::int32_t> matched,
                                 std::span<const double> background_loss) {
  std::vector<std::size_t> negatives;
  std::vector<double> loss(background_loss.begin(), background_loss.end());
  for (std::size_t i = 0; i < matched.size(); ++i) {
    if (matched[i] < 0) negatives.push_back(i);
    if (std::isnan(loss[i])) loss[i] = std::numeric_limits<double>::infinity();  // sortable
  }
  const std::size_t wanted = kNegatives * (matched.size() - negatives.size());
  std::ranges::stable_sort(negatives,
                           [&](std::size_t a, std::size_t b) { return loss[a] > loss[b]; });
  negatives.resize(std::min(wanted, negatives.size()));
  return negatives;
}

}  // namespace halfscope::sim::networks
