// SPDX-License-Identifier: Apache-2.0
// Default boxes of a single-shot detector: W. Liu et al., SSD: Single Shot MultiBox Detector, 2016,
// section 2.2. All boxes are in [0, 1] of the image.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/data/data.hpp"

namespace halfscope::sim::networks {

struct Anchor {
  double x = 0, y = 0, width = 0, height = 0;  ///< of the centre
};

inline constexpr std::array kAnchorRatios = {1.0, 2.0, 0.5};

/// Of a feature map, row by row, the ratios of a cell next to each other.
void add_anchors(std::int64_t height, std::int64_t width, double scale,
                 std::vector<Anchor>& anchors);

/// Area of the intersection over that of the union.
double overlap(const data::Box& a, const data::Box& b);

/// Offsets of a box from an anchor, equation 2; and back.
std::array<float, 4> encode(const data::Box& box, const Anchor& anchor);
data::Box decode(std::span<const float, 4> offsets, const Anchor& anchor);

/// For each anchor the ground-truth box it is matched to, or -1: a box's best anchor, and every
/// anchor that overlaps it by 0.5 or more.
std::vector<std::int32_t> match(std::span<const Anchor> anchors, std::span<const data::Box> truth);

/// Of unmatched anchors those with the highest confidence loss, 3 for each matched one.
std::vector<std::size_t> hardest(std::span<const std::int32_t> matched,
                                 std::span<const double> background_loss);

}  // namespace halfscope::sim::networks
