// SPDX-License-Identifier: Apache-2.0
#include "sim/networks/detections.hpp"

#include <cmath>

#include "catch.hpp"

namespace test_detections {

using namespace halfscope::sim;

const data::Box kLeft{0.1F, 0.1F, 0.4F, 0.4F, 0}, kRight{0.6F, 0.6F, 0.9F, 0.9F, 1};
/// Where kLeft is, 0.03 further right: 0.27 * 0.3 of 0.33 * 0.3 is shared.
const data::Box kBeside{0.13F, 0.1F, 0.43F, 0.4F, 0};

networks::Anchor anchor_at(const data::Box& box) {
  return {(double{box.left} + box.right) / 2, (double{box.top} + box.bottom) / 2,
          double{box.right} - box.left, double{box.bottom} - box.top};
}

TEST_CASE("detections are anchors that are not background, less weaker ones of the same thing") {
  const std::vector<networks::Anchor> anchors = {
      anchor_at(kBeside), anchor_at(kLeft), anchor_at(kRight), anchor_at(kLeft), anchor_at(kLeft)};
  const std::vector<float> logits = {0, 1, 0,   // class 0, beside a more confident one
                                     0, 3, 0,   // class 0
                                     0, 1, 2,   // class 1
                                     4, 3, 3,   // background
                                     0, 0, 5};  // class 1 at the same place: another thing
  const std::vector<float> offsets(20, 0.0F);
  const auto found = networks::detections(anchors, logits, offsets);
  REQUIRE(found.size() == 3);
  CHECK(found[0].box.label == 1);
  CHECK(found[0].confidence == Approx(std::exp(5) / (2 + std::exp(5))));
  CHECK(found[1].box.label == 0);
  CHECK(found[1].confidence == Approx(std::exp(3) / (2 + std::exp(3))));
  CHECK(networks::overlap(found[1].box, kLeft) == Approx(1).epsilon(1e-6));
  CHECK(found[2].box.label == 1);
  CHECK(networks::overlap(found[2].box, kRight) == Approx(1).epsilon(1e-6));
}

TEST_CASE("a row that is not a number is no detection") {
  const std::vector<networks::Anchor> anchors = {anchor_at(kLeft)};
  const std::vector<float> logits = {0, NAN, 0}, offsets(4, 0.0F);
  CHECK(networks::detections(anchors, logits, offsets).empty());
}

TEST_CASE("right are boxes found, of those there are and detections that are none") {
  const std::vector<data::Box> truth = {kLeft, kRight};
  const auto judged = [&](std::vector<networks::Detection> found) {
    const networks::Score score = networks::judge(found, truth);
    return std::pair(score.right, score.of);
  };
  data::Box other_class = kRight;
  other_class.label = 0;
  CHECK(judged({}) == std::pair(std::uint64_t{0}, std::uint64_t{2}));
  CHECK(judged({{kLeft, 0.9}, {kRight, 0.8}}) == std::pair(std::uint64_t{2}, std::uint64_t{2}));
  CHECK(judged({{kBeside, 0.9}}) == std::pair(std::uint64_t{1}, std::uint64_t{2}));
  // The second of the same box, and the wrong class, are false alarms.
  CHECK(judged({{kBeside, 0.9}, {kLeft, 0.8}}) == std::pair(std::uint64_t{1}, std::uint64_t{3}));
  CHECK(judged({{other_class, 0.9}}) == std::pair(std::uint64_t{0}, std::uint64_t{3}));
}

TEST_CASE("a detection chooses the box it overlaps most") {
  data::Box wide = kLeft;
  wide.right = 0.55F;
  const std::vector<data::Box> truth = {wide, kLeft};
  const std::vector<networks::Detection> found = {{kLeft, 0.9}, {wide, 0.8}};
  const networks::Score score = networks::judge(found, truth);
  CHECK(score.right == 2);
  CHECK(score.of == 2);
}

}  // namespace test_detections
