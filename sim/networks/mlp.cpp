// SPDX-License-Identifier: Apache-2.0
// A perceptron with two hidden layers.
#include "sim/networks/rows.hpp"

namespace halfscope::sim::networks {

using autograd::Tape;
using backend::Backend;
using data::Batch;
using data::Data;

namespace {

Tape::Value mlp_logits(Tape& tape, Backend& backend, const Batch& batch, Dtype tensors,
                       const Data& data) {
  Tape::Value x = images_of(batch, tape, backend, tensors);
  x = tape.relu("relu1", tape.dense("fc1", x, 64));
  x = tape.relu("relu2", tape.dense("fc2", x, 32));
  return tape.dense("fc3", x, data.classes());
}

}  // namespace

Network mlp() {
  return {.name = "mlp",
          .what = "three dense layers",
          .data = "blobs",
          .learning_rate = 0.1,
          .batch = 32,
          .steps = 1000,
          .forward = forward_classifier<mlp_logits>,
          .refuses = refuses_all_but_labelled,
          .score = score_classifier<mlp_logits>};
}

}  // namespace halfscope::sim::networks
