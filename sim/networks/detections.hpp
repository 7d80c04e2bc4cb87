// SPDX-License-Identifier: Apache-2.0
// What a detector says of an image, and how right it is.
#pragma once

#include <span>
#include <vector>

#include "sim/networks/anchors.hpp"
#include "sim/networks/network.hpp"

namespace halfscope::sim::networks {

struct Detection {
  data::Box box;
  double confidence = 0;  ///< softmax of its class
};

/// An image's detections, the most confident first: anchors whose likeliest class is not the
/// background, less those that overlap a more confident one of their class by more than 0.45
/// (SSD, section 3.1). logits: (anchors, classes + 1); offsets: (anchors, 4).
std::vector<Detection> detections(std::span<const Anchor> anchors, std::span<const float> logits,
                                  std::span<const float> offsets);

/// Right: boxes that a detection of their class overlaps by 0.5 or more, each detection for one
/// box, the most confident choosing first. Of: all boxes, and detections that are none (the
/// critical success index, Donaldson et al. 1975).
Score judge(std::span<const Detection> found, std::span<const data::Box> truth);

}  // namespace halfscope::sim::networks
