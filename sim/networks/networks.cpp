// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>

#include "sim/networks/network.hpp"
#include "sim/networks/rows.hpp"

namespace halfscope::sim::networks {

std::span<const Network> networks() {
  static const std::array all = {
      mlp(), lenet(), resnet20(), tinyssd(), tinyssd_all_anchors(), charlstm(), resnet50()};
  return all;
}

const Network* find_network(std::string_view name) {
  for (const Network& network : networks()) {
    if (network.name == name) return &network;
  }
  return nullptr;
}

autograd::Tape::Value images_of(const data::Batch& batch, autograd::Tape& tape,
                                backend::Backend& backend, Dtype tensors) {
  backend::Tensor x = backend.allocate_uninitialized(batch.shape, tensors);
  backend.set(x, batch.inputs);
  return tape.input(x);
}

std::string refuses_all_but_labelled(const data::Data& data) {
  if (data.example().size() == 3 && !data.batch(0, 1).labels.empty()) return {};
  return data.describe() +
         ": this network needs images with one label each: digits, blobs, "
         "images, large-images, or a folder with MNIST's or CIFAR-10's files";
}

void classify(autograd::Tape& tape, autograd::Tape::Value logits, const data::Batch& batch) {
  tape.cross_entropy("loss", logits, batch.labels, static_cast<double>(batch.labels.size()));
}

Score score_rows(backend::Backend& backend, const backend::Tensor& logits,
                 std::span<const std::int32_t> labels) {
  const std::vector<float> values = backend.get(logits);
  const std::size_t classes = values.size() / labels.size();
  Score score;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * classes);
    const auto largest = std::max_element(first, first + static_cast<std::ptrdiff_t>(classes));
    if (largest - first == labels[row]) ++score.right;
  }
  score.of = labels.size();
  return score;
}

}  // namespace halfscope::sim::networks
