// SPDX-License-Identifier: Apache-2.0
// ResNet-50, for timing: K. He, X. Zhang, S. Ren, J. Sun, Deep Residual Learning for Image
// Recognition, 2015, table 1, shortcuts of option B; as in torchvision, the 3 x 3 convolution of a
// block has the stride. The first pooling is 2 x 2, not 3 x 3 with padding, which our pooling does
// not support; the shapes after it are the same.
#include <array>
#include <string>

#include "sim/networks/rows.hpp"

namespace halfscope::sim::networks {

using autograd::Tape;
using backend::Convolution;

namespace {

struct Stage {
  std::int64_t channels;
  int blocks;
};
constexpr std::array kStages = {Stage{64, 3}, Stage{128, 4}, Stage{256, 6}, Stage{512, 3}};
constexpr std::int64_t kExpansion = 4, kReduction = 32;

Tape::Value normalised(Tape& tape, const std::string& conv, const std::string& bn, Tape::Value x,
                       std::int64_t channels, const Convolution& shape) {
  return tape.batch_norm(bn, tape.conv(conv, x, channels, shape, false));
}

Tape::Value resnet50_block(Tape& tape, const std::string& name, Tape::Value x,
                           std::int64_t channels, int stride) {
  const Convolution point{.kernel = 1, .stride = 1, .padding = 0};
  const Convolution middle{.kernel = 3, .stride = stride, .padding = 1};
  const Convolution across{.kernel = 1, .stride = stride, .padding = 0};
  Tape::Value y = normalised(tape, name + ".conv1", name + ".bn1", x, channels, point);
  y = tape.relu(name + ".relu1", y);
  y = normalised(tape, name + ".conv2", name + ".bn2", y, channels, middle);
  y = tape.relu(name + ".relu2", y);
  y = normalised(tape, name + ".conv3", name + ".bn3", y, channels * kExpansion, point);
  if (tape.value(x).shape != tape.value(y).shape) {
    x = normalised(tape, name + ".downsample.0", name + ".downsample.1", x, channels * kExpansion,
                   across);
  }
  return tape.relu(name + ".relu3", tape.add(name + ".add", y, x));
}

void resnet50_forward(Tape& tape, backend::Backend& backend, const data::Batch& batch,
                      Dtype tensors, const data::Data& data) {
  Tape::Value x = images_of(batch, tape, backend, tensors);
  x = normalised(tape, "conv1", "bn1", x, 64, {.kernel = 7, .stride = 2, .padding = 3});
  x = tape.pool("maxpool", tape.relu("relu1", x), {});
  for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
    for (int i = 0; i < kStages[stage].blocks; ++i) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      x = resnet50_block(tape, name, x, kStages[stage].channels, stage > 0 && i == 0 ? 2 : 1);
    }
  }
  const int side = static_cast<int>(tape.value(x).shape[1]);
  x = tape.pool("avgpool", x,
                {.kind = backend::Pool::Kind::average, .kernel = side, .stride = side});
  classify(tape, tape.dense("fc", x, data.classes()), batch);
}

std::string resnet50_refuses(const data::Data& data) {
  if (std::string why = refuses_all_but_labelled(data); !why.empty()) return why;
  const backend::Shape shape = data.example();
  if (shape[0] == shape[1] && shape[0] % kReduction == 0) return {};
  return data.describe() +
         ": this network needs square images with a side that 32 divides: take large-images";
}

}  // namespace

Network resnet50() {
  return {.name = "resnet50",
          .what = "ImageNet's ResNet of 50 layers, for timing on a GPU",
          .data = "large-images",
          .learning_rate = 0.1,
          .batch = 64,
          .steps = 50,
          .forward = resnet50_forward,
          .refuses = resnet50_refuses};
}

}  // namespace halfscope::sim::networks
