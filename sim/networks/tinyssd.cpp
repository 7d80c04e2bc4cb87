// SPDX-License-Identifier: Apache-2.0
// A small single-shot detector (networks/anchors.hpp): four convolutions and two feature maps, each
// with one convolution for confidences and one for offsets. The loss is SSD's, equations 1 to 3:
// softmax cross entropy over matched anchors and the hardest negatives, plus smooth L1 over matched
// anchors, both divided by the number of matched anchors or, in a variant, of all anchors.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sim/networks/anchors.hpp"
#include "sim/networks/detections.hpp"
#include "sim/networks/rows.hpp"

namespace halfscope::sim::networks {

using autograd::Tape;
using backend::Backend;
using data::Batch;
using data::Box;
using data::Data;

namespace {

constexpr std::array kScales = {0.25, 0.42};  // relative to the image's side; boxes are 0.19 to
                                              // 0.52

struct Detections {
  Tape::Value confidences,
      offsets;  // (images * anchors, classes + 1), (images * anchors, 4)
  std::vector<Anchor> anchors;
};

Detections detect(Tape& tape, Backend& backend, const Batch& batch, Dtype tensors,
                  const Data& data) {
  const backend::Convolution halving{.kernel = 3, .stride = 2, .padding = 1};
  Tape::Value x = images_of(batch, tape, backend, tensors);
  x = tape.pool("pool1", tape.relu("relu1", tape.conv("conv1", x, 16, {})), {});
  x = tape.pool("pool2", tape.relu("relu2", tape.conv("conv2", x, 32, {})), {});
  const Tape::Value fine = tape.relu("relu3", tape.conv("conv3", x, 64, {}));
  const Tape::Value coarse = tape.relu("relu4", tape.conv("conv4", fine, 64, halving));

  Detections made{};
  const std::int64_t images = batch.shape[0], classes = data.classes() + 1;
  constexpr auto ratios = static_cast<std::int64_t>(kAnchorRatios.size());
  std::vector<Tape::Value> confidences, offsets;
  for (std::size_t map = 0; map < kScales.size(); ++map) {
    const Tape::Value features = map == 0 ? fine : coarse;
    const backend::Shape shape = tape.value(features).shape;
    add_anchors(shape[1], shape[2], kScales[map], made.anchors);
    const std::int64_t anchors = shape[1] * shape[2] * ratios;
    const std::string number = std::to_string(map + 1);
    const auto head = [&](const std::string& name, std::int64_t width) {
      const Tape::Value y = tape.conv(name + number, features, ratios * width, {});
      return tape.reshape(y, {images, anchors, width});
    };
    confidences.push_back(head("conf", classes));
    offsets.push_back(head("loc", 4));
  }
  const std::int64_t rows = images * static_cast<std::int64_t>(made.anchors.size());
  made.confidences = tape.reshape(tape.join("conf", confidences), {rows, classes});
  made.offsets = tape.reshape(tape.join("loc", offsets), {rows, 4});
  return made;
}

/// Returns -log(softmax) of a row's class 0, the background.
double background_loss(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  return std::log(sum) + largest - double{logits[0]};
}

struct Targets {
  std::vector<std::int32_t> labels;  // -1: not in any loss
  std::vector<std::uint8_t> matched;
  std::vector<float> offsets;
  std::size_t count = 0;  // number of matched anchors
};

/// Adds the targets of one image; `logits` are this image's.
void add_image(std::span<const Anchor> anchors, std::span<const Box> truth,
               std::span<const float> logits, Targets& targets) {
  const std::vector<std::int32_t> matched = match(anchors, truth);
  const std::size_t first = targets.labels.size(), width = logits.size() / anchors.size();
  std::vector<double> losses;
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    losses.push_back(background_loss(logits.subspan(i * width, width)));
    const bool has_box = matched[i] >= 0;
    const Box box = has_box ? truth[static_cast<std::size_t>(matched[i])] : Box{};
    const auto offsets = has_box ? encode(box, anchors[i]) : std::array<float, 4>{};
    targets.labels.push_back(has_box ? box.label + 1 : -1);
    targets.matched.push_back(has_box ? 1 : 0);
    targets.offsets.insert(targets.offsets.end(), offsets.begin(), offsets.end());
    targets.count += has_box ? 1 : 0;
  }
  for (const std::size_t i : hardest(matched, losses)) targets.labels[first + i] = 0;
}

void lose(Tape& tape, Backend& backend, const Batch& batch, Dtype tensors, const Data& data,
          bool all_anchors) {
  const Detections found = detect(tape, backend, batch, tensors, data);
  const std::vector<float> logits = backend.get(tape.value(found.confidences));
  const std::size_t each = logits.size() / batch.boxes.size();
  Targets targets;
  for (std::size_t image = 0; image < batch.boxes.size(); ++image) {
    add_image(found.anchors, batch.boxes[image], std::span(logits).subspan(image * each, each),
              targets);
  }
  // SSD: "If N = 0, we set the loss to 0". No row has a loss then, so any divisor serves.
  const std::size_t of =
      all_anchors ? targets.labels.size() : std::max<std::size_t>(targets.count, 1);
  tape.cross_entropy("conf", found.confidences, targets.labels, static_cast<double>(of));
  tape.smooth_l1("loc", found.offsets, targets.offsets, targets.matched, static_cast<double>(of));
}

void tinyssd_forward(Tape& tape, Backend& backend, const Batch& batch, Dtype tensors,
                     const Data& data) {
  lose(tape, backend, batch, tensors, data, false);
}

void forward_all_anchors(Tape& tape, Backend& backend, const Batch& batch, Dtype tensors,
                         const Data& data) {
  lose(tape, backend, batch, tensors, data, true);
}

Score tinyssd_score(Tape& tape, Backend& backend, const Batch& batch, Dtype tensors,
                    const Data& data) {
  const Detections found = detect(tape, backend, batch, tensors, data);
  const std::vector<float> logits = backend.get(tape.value(found.confidences));
  const std::vector<float> offsets = backend.get(tape.value(found.offsets));
  const std::size_t images = batch.boxes.size();
  const std::size_t logits_each = logits.size() / images, offsets_each = offsets.size() / images;
  Score made;
  for (std::size_t image = 0; image < images; ++image) {
    const Score one =
        judge(detections(found.anchors, std::span(logits).subspan(image * logits_each, logits_each),
                         std::span(offsets).subspan(image * offsets_each, offsets_each)),
              batch.boxes[image]);
    made.right += one.right;
    made.of += one.of;
  }
  return made;
}

std::string tinyssd_refuses(const Data& data) {
  if (data.example().size() == 3 && !data.batch(0, 1).boxes.empty()) return {};
  return data.describe() + ": this network needs images with boxes: take boxes";
}

}  // namespace

Network tinyssd() {
  return {.name = "tinyssd",
          .what =
              "a small detector; its loss is over matched anchors; right are boxes found, of those "
              "and false ones",
          .data = "boxes",
          .learning_rate = 0.05,
          .batch = 16,
          .steps = 1000,
          .forward = tinyssd_forward,
          .refuses = tinyssd_refuses,
          .score = tinyssd_score};
}

Network tinyssd_all_anchors() {
  Network made = tinyssd();
  made.name = "tinyssd-all-anchors";
  made.what = "the same with its loss over all anchors";
  made.learning_rate = 3;  // the loss is divided by about 70 times as much
  made.forward = forward_all_anchors;
  return made;
}

}  // namespace halfscope::sim::networks
