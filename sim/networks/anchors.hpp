// SPDX-License-Identifier: Apache-2.0
// Default boxes (anchors) of a single-shot detector: W. Liu et al., SSD: Single Shot MultiBox
// Detector, 2016, section 2.2. All coordinates are in [0, 1], relative to the image.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/data/data.hpp"

namespace halfscope::sim::networks {

struct Anchor {
  double x = 0, y = 0, width = 0, height = 0;  ///< x, y: the centre
};

inline constexpr std::array kAnchorRatios = {1.0, 2.0, 0.5};

/// Appends the anchors of a feature map, row by row; the ratios of one cell are adjacent.
void add_anchors(std::int64_t height, std::int64_t width, double scale,
                 std::vector<Anchor>& anchors);

/// Returns the area of the intersection divided by the area of the union.
double overlap(const data::Box& a, const data::Box& b);

/// Converts a box to offsets from an anchor (equation 2), and back.
std::array<float, 4> encode(const data::Box& box, const Anchor& anchor);
data::Box decode(std::span<const float, 4> offsets, const Anchor& anchor);

/// Returns for each anchor the index of its ground-truth box, or -1. An anchor is matched to a box
/// if it is the box's best anchor, or if their overlap is 0.5 or more.
std::vector<std::int32_t> match(std::span<const Anchor> anchors, std::span<const data::Box> truth);

/// Returns the unmatched anchors with the highest confidence loss, 3 for each matched anchor.
std::vector<std::size_t> hardest(std::span<const std::int32_t> matched,
                                 std::span<const double> background_loss);

}  // namespace halfscope::sim::networks
