// SPDX-License-Identifier: Apache-2.0
#include "sim/networks/detections.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace halfscope::sim::networks {
namespace {

constexpr double kSame = 0.45, kFound = 0.5;

/// Returns the softmax probability of the largest logit: 1 over the sum of exponentials.
double likelihood(std::span<const float> logits, float largest) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  return 1 / sum;
}

}  // namespace

std::vector<Detection> detections(std::span<const Anchor> anchors, std::span<const float> logits,
                                  std::span<const float> offsets) {
  const std::size_t width = logits.size() / anchors.size();
  std::vector<Detection> all;
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    const auto row = logits.subspan(i * width, width);
    const auto likeliest = std::ranges::max_element(row);
    if (likeliest == row.begin() || !std::isfinite(*likeliest)) continue;
    Detection made{decode(offsets.subspan(4 * i).first<4>(), anchors[i]),
                   likelihood(row, *likeliest)};
    made.box.label = static_cast<std::int32_t>(likeliest - row.begin()) - 1;
    all.push_back(made);
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Detection::confidence);
  std::vector<Detection> kept;
  for (const Detection& one : all) {
    const bool there = std::ranges::any_of(kept, [&](const Detection& other) {
      return other.box.label == one.box.label && overlap(other.box, one.box) > kSame;
    });
    if (!there) kept.push_back(one);
  }
  return kept;
}

Score judge(std::span<const Detection> found, std::span<const data::Box> truth) {
  std::vector<bool> taken(truth.size(), false);
  Score score;
  for (const Detection& one : found) {
    std::size_t best = truth.size();
    double most = kFound;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      const double shared = overlap(one.box, truth[i]);
      if (taken[i] || truth[i].label != one.box.label || shared < most) continue;
      most = shared;
      best = i;
    }
    if (best == truth.size()) continue;
    taken[best] = true;
    ++score.right;
  }
  score.of = truth.size() + found.size() - score.right;
  return score;
}

}  // namespace halfscope::sim::networks
