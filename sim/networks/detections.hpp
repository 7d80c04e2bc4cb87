// SPDX-License-Identifier: Apache-2.0
// Detections of a detector, and their score.
#pragma once

#include <span>
#include <vector>

#include "sim/networks/anchors.hpp"
#include "sim/networks/network.hpp"

namespace halfscope::sim::networks {

struct Detection {
  data::Box box;
  double confidence = 0;  ///< softmax probability of the box's class
};

/// Returns an image's detections, the most confident first: anchors whose most likely class is not
/// the background, without those that overlap a more confident one of the same class by more than
/// 0.45 (SSD, section 3.1). logits: (anchors, classes + 1); offsets: (anchors, 4).
std::vector<Detection> detections(std::span<const Anchor> anchors, std::span<const float> logits,
                                  std::span<const float> offsets);

/// Returns the critical success index (Donaldson et al. 1975) as a Score. `right` counts boxes that
/// a detection of their class overlaps by 0.5 or more; each detection is used for one box, the most
/// confident first. `of` counts all boxes, and the detections that match none.
Score judge(std::span<const Detection> found, std::span<const data::Box> truth);

}  // namespace halfscope::sim::networks
