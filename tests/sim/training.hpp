// SPDX-License-Identifier: Apache-2.0
// A tiny network and its runs, for the tests of training: settings, and what a run's log says.
#pragma once

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "halfscope/log/run_log.hpp"
#include "halfscope/log/safetensors.hpp"
#include "sim/training/trainer.hpp"

namespace halfscope::test {

inline sim::autograd::Tape::Value input_of(sim::autograd::Tape& tape,
                                           sim::backend::Backend& backend,
                                           const sim::data::Batch& batch, Dtype tensors) {
  sim::backend::Tensor x = backend.make(batch.shape, tensors);
  backend.set(x, batch.inputs);
  return tape.input(x);
}

inline void loss_of(sim::autograd::Tape& tape, sim::autograd::Tape::Value logits,
                    const sim::data::Batch& batch) {
  tape.cross_entropy("loss", logits, batch.labels, static_cast<double>(batch.labels.size()));
}

/// Two dense layers.
inline void forward_dense(sim::autograd::Tape& tape, sim::backend::Backend& backend,
                          const sim::data::Batch& batch, Dtype tensors,
                          const sim::data::Data& data) {
  const auto x = input_of(tape, backend, batch, tensors);
  const auto hidden = tape.relu("relu", tape.dense("fc1", x, 12));
  loss_of(tape, tape.dense("fc2", hidden, data.classes()), batch);
}

/// A convolution, batch normalisation, a pool, a dense layer.
inline void forward_conv(sim::autograd::Tape& tape, sim::backend::Backend& backend,
                         const sim::data::Batch& batch, Dtype tensors,
                         const sim::data::Data& data) {
  const auto x = input_of(tape, backend, batch, tensors);
  const auto y = tape.conv("conv", x, 4, {.kernel = 3, .stride = 2, .padding = 1});
  const auto z = tape.pool("pool", tape.relu("relu", tape.batch_norm("bn", y)), {});
  loss_of(tape, tape.dense("fc", z, data.classes()), batch);
}

inline std::string refuses_none(const sim::data::Data&) { return {}; }

inline const sim::networks::Network kDense = {.name = "dense-of-tests",
                                              .what = "two dense layers",
                                              .data = "blobs",
                                              .forward = forward_dense,
                                              .refuses = refuses_none};
inline const sim::networks::Network kConv = {.name = "conv-of-tests",
                                             .what = "one convolution",
                                             .data = "images",
                                             .forward = forward_conv,
                                             .refuses = refuses_none};

inline const sim::backend::Precision& precision(std::string_view name) {
  for (const sim::backend::Precision& mode : sim::backend::kPrecisions) {
    if (mode.name == name) return mode;
  }
  throw std::invalid_argument("no such precision");
}

/// 12 steps, each with tables.
inline sim::training::Settings settings(std::string_view mode, const std::string& scaling = {},
                                        const sim::networks::Network& network = kDense) {
  sim::training::Settings s;
  s.network = &network;
  s.data = network.data;
  s.precision = precision(mode);
  if (!scaling.empty()) s.policy = policy::make(scaling);
  s.batch = 8;
  s.steps = 12;
  s.seed = 7;
  s.record_every = 1;
  s.checkpoint_every = 5;
  s.threads = 1;
  return s;
}

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// All that a log says, as texts by what they are of: two logs that say the same are equal. Times
/// and the names of event files are not in it.
inline std::map<std::string, std::string> contents(const std::filesystem::path& run) {
  std::map<std::string, std::string> all;
  const log::RunLog log(run);
  const auto number = [](double value) {
    std::string bits(sizeof value, '\0');
    std::memcpy(bits.data(), &value, sizeof value);
    return bits;
  };
  for (const log::StepScalars& s : log.scalars()) {
    std::string& text = all["step " + std::to_string(s.step)];
    for (const auto& value : {s.loss, s.learning_rate, s.loss_scale, s.max_abs_weight_grad,
                              s.max_abs_activation_grad}) {
      text += value ? number(*value) : "none";
    }
    text += s.found_inf ? (*s.found_inf ? "skipped" : "applied") : "none";
    for (const auto& [tag, value] : s.more) text += tag + number(value);
  }
  log.for_each([&](log::TensorRecord&& record) {
    std::string& text = all[record.name + " " + std::to_string(record.step)];
    for (const std::int64_t word : record.table.encode()) text += std::to_string(word) + " ";
    for (const std::uint64_t extent : record.shape) text += std::to_string(extent) + "x";
    text += number(record.scale) + number(record.moments.mean) + number(record.moments.sum_squares);
  });
  for (const auto& [step, file] : log.samples()) {
    all["sample " + std::to_string(step)] = bytes_of(file);
  }
  return all;
}

/// Values of a tensor of a safetensors file that are F32.
inline std::vector<float> floats(const log::TensorFile& file, const std::string& name) {
  const auto tensor = file.tensor(name);
  if (!tensor || tensor->view.dtype != Dtype::f32) throw std::invalid_argument(name + ": no F32");
  std::vector<float> values(tensor->view.count);
  std::memcpy(values.data(), tensor->view.data, tensor->view.bytes());
  return values;
}

}  // namespace halfscope::test
