// SPDX-License-Identifier: Apache-2.0
// Similar to LeNet-5 (Y. LeCun, L. Bottou, Y. Bengio, P. Haffner 1998): two convolutions with 6 and
// 16 channels, each with pooling, and dense layers, but with ReLU and max pooling instead of
// sigmoids and averages. The kernels are 5 x 5, or 3 x 3 for small images.
#include "sim/networks/rows.hpp"

namespace halfscope::sim::networks {

using autograd::Tape;
using backend::Backend;
using data::Batch;
using data::Data;

namespace {

constexpr std::int64_t kLeastSide = 8, kLargeKernels = 20;

Tape::Value lenet_logits(Tape& tape, Backend& backend, const Batch& batch, Dtype tensors,
                         const Data& data) {
  const bool large = batch.shape[1] >= kLargeKernels && batch.shape[2] >= kLargeKernels;
  const backend::Convolution first{.kernel = large ? 5 : 3, .stride = 1, .padding = large ? 2 : 1};
  const backend::Convolution second{.kernel = large ? 5 : 3, .stride = 1, .padding = large ? 0 : 1};
  Tape::Value x = images_of(batch, tape, backend, tensors);
  x = tape.relu("relu1", tape.conv("conv1", x, 6, first));
  x = tape.pool("pool1", x, {});
  x = tape.relu("relu2", tape.conv("conv2", x, 16, second));
  x = tape.pool("pool2", x, {});
  x = tape.relu("relu3", tape.dense("fc1", x, 120));
  return tape.dense("fc2", x, data.classes());
}

std::string lenet_refuses(const Data& data) {
  if (std::string why = refuses_all_but_labelled(data); !why.empty()) return why;
  const backend::Shape shape = data.example();
  if (shape[0] >= kLeastSide && shape[1] >= kLeastSide) return {};
  return data.describe() + ": this network needs images of 8 x 8 pixels or more: take digits";
}

}  // namespace

Network lenet() {
  return {.name = "lenet",
          .what = "two convolutions with pooling, two dense layers",
          .data = "digits",
          .learning_rate = 0.1,
          .batch = 32,
          .steps = 1000,
          .forward = forward_classifier<lenet_logits>,
          .refuses = lenet_refuses,
          .score = score_classifier<lenet_logits>};
}

}  // namespace halfscope::sim::networks
