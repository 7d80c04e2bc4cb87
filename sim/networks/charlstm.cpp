// SPDX-License-Identifier: Apache-2.0
// A character language model: embedding, one LSTM layer, dense layer. The LSTM's state is zero at
// the start of each window of text.
#include <span>
#include <vector>

#include "sim/networks/rows.hpp"

namespace halfscope::sim::networks {

using autograd::Tape;
using data::Batch;
using data::Data;

namespace {

constexpr std::int64_t kEmbedding = 32, kWidth = 128;

Tape::Value charlstm_logits(Tape& tape, backend::Backend&, const Batch& batch, Dtype,
                            const Data& data) {
  const std::int64_t steps = data.example()[0];
  const auto rows = static_cast<std::int64_t>(batch.ids.size()) / steps;
  const Tape::Value all = tape.embed("embedding", batch.ids, data.classes(), kEmbedding);
  const auto inputs = tape.split(tape.reshape(all, {1, steps * rows, kEmbedding}), steps);
  Tape::Value h = tape.zeros({rows, kWidth});
  backend::Tensor c;
  std::vector<Tape::Value> outputs;
  for (const Tape::Value x : inputs) {
    h = tape.lstm("lstm", tape.reshape(x, {rows, kEmbedding}), h, c, kWidth);
    outputs.push_back(tape.reshape(h, {1, rows, kWidth}));
  }
  const Tape::Value joined = tape.join("lstm", outputs);  // time first, as in labels
  return tape.dense("fc", tape.reshape(joined, {steps * rows, kWidth}), data.classes());
}

std::string charlstm_refuses(const Data& data) {
  if (data.example().size() == 1) return {};
  return data.describe() + ": this network needs text: text, or a text file";
}

}  // namespace

Network charlstm() {
  return {.name = "charlstm",
          .what = "character language model: embedding, LSTM, dense",
          .data = "text",
          .learning_rate = 1.0,
          .batch = 32,
          .steps = 1000,
          .forward = forward_classifier<charlstm_logits>,
          .refuses = charlstm_refuses,
          .score = score_classifier<charlstm_logits>};
}

}  // namespace halfscope::sim::networks
