// SPDX-License-Identifier: Apache-2.0
// ResNet-20 for CIFAR-10: K. He, X. Zhang, S. Ren, J. Sun, Deep Residual Learning for Image
// Recognition, 2015, section 4.2, n = 3, with shortcuts of option A: identity; if the shape
// changes, every second pixel and additional channels of zeros. 269722 weights.
#include <array>
#include <string>

#include "sim/networks/rows.hpp"

namespace halfscope::sim::networks {

using autograd::Tape;
using backend::Backend;
using data::Batch;
using data::Data;

namespace {

constexpr int kBlocks = 3;
constexpr std::array<std::int64_t, 3> kChannels = {16, 32, 64};

/// Returns every `stride`-th pixel, with channels of zeros after the old channels.
Tape::Value shortcut(Tape& tape, Tape::Value x, std::int64_t channels, int stride) {
  const std::int64_t before = tape.value(x).shape[3];
  if (before == channels) return x;
  x = tape.pool({}, x, {.kind = backend::Pool::Kind::max, .kernel = 1, .stride = stride});
  const backend::Shape shape = tape.value(x).shape;
  const std::int64_t pixels = shape[0] * shape[1] * shape[2];
  const std::array parts = {tape.reshape(x, {pixels, before, 1}),
                            tape.zeros({pixels, channels - before, 1})};
  return tape.reshape(tape.join({}, parts), {shape[0], shape[1], shape[2], channels});
}

Tape::Value resnet20_block(Tape& tape, const std::string& name, Tape::Value x,
                           std::int64_t channels, int stride) {
  const backend::Convolution first{.kernel = 3, .stride = stride, .padding = 1}, second{};
  Tape::Value y = tape.conv(name + ".conv1", x, channels, first, false);
  y = tape.relu(name + ".relu1", tape.batch_norm(name + ".bn1", y));
  y = tape.conv(name + ".conv2", y, channels, second, false);
  y = tape.batch_norm(name + ".bn2", y);
  y = tape.add(name + ".add", y, shortcut(tape, x, channels, stride));
  return tape.relu(name + ".relu2", y);
}

Tape::Value resnet20_logits(Tape& tape, Backend& backend, const Batch& batch, Dtype tensors,
                            const Data& data) {
  Tape::Value x = images_of(batch, tape, backend, tensors);
  x = tape.batch_norm("bn1", tape.conv("conv1", x, kChannels[0], {}, false));
  x = tape.relu("relu1", x);
  for (std::size_t stage = 0; stage < kChannels.size(); ++stage) {
    for (int i = 0; i < kBlocks; ++i) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      x = resnet20_block(tape, name, x, kChannels[stage], stage > 0 && i == 0 ? 2 : 1);
    }
  }
  const int side = static_cast<int>(tape.value(x).shape[1]);
  x = tape.pool("pool", x, {.kind = backend::Pool::Kind::average, .kernel = side, .stride = side});
  return tape.dense("fc", x, data.classes());
}

std::string resnet20_refuses(const Data& data) {
  if (std::string why = refuses_all_but_labelled(data); !why.empty()) return why;
  const backend::Shape shape = data.example();
  if (shape[0] == shape[1] && shape[0] % 4 == 0) return {};
  return data.describe() +
         ": this network needs square images with a side that 4 divides: take images";
}

}  // namespace

Network resnet20() {
  return {.name = "resnet20",
          .what = "CIFAR-10's ResNet of 20 layers, shortcuts of option A",
          .data = "images",
          .learning_rate = 0.1,
          .batch = 32,
          .steps = 300,
          .forward = forward_classifier<resnet20_logits>,
          .refuses = resnet20_refuses,
          .score = score_classifier<resnet20_logits>};
}

}  // namespace halfscope::sim::networks
