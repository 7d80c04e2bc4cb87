// SPDX-License-Identifier: Apache-2.0
// All networks, each defined in a file of its own, and the functions they share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/networks/network.hpp"

namespace halfscope::sim::networks {

Network mlp();
Network lenet();
Network resnet20();
Network resnet50();
Network tinyssd();
Network tinyssd_all_anchors();
Network charlstm();

/// Returns a batch's inputs on the tape, rounded to the dtype `tensors`.
autograd::Tape::Value images_of(const data::Batch& batch, autograd::Tape& tape,
                                backend::Backend& backend, Dtype tensors);

/// Returns why data are not images with one label each; an empty string if they are.
std::string refuses_all_but_labelled(const data::Data& data);

/// Adds the loss of a classifier: the mean over rows.
void classify(autograd::Tape& tape, autograd::Tape::Value logits, const data::Batch& batch);
/// Counts the rows whose largest logit belongs to their label.
Score score_rows(backend::Backend& backend, const backend::Tensor& logits,
                 std::span<const std::int32_t> labels);

/// Network::forward of a classifier. `logits` computes one row per example from the same arguments.
template <auto logits>
void forward_classifier(autograd::Tape& tape, backend::Backend& backend, const data::Batch& batch,
                        Dtype tensors, const data::Data& data) {
  classify(tape, logits(tape, backend, batch, tensors, data), batch);
}

/// Network::score of a classifier; `logits` as in forward_classifier.
template <auto logits>
Score score_classifier(autograd::Tape& tape, backend::Backend& backend, const data::Batch& batch,
                       Dtype tensors, const data::Data& data) {
  return score_rows(backend, tape.value(logits(tape, backend, batch, tensors, data)), batch.labels);
}

}  // namespace halfscope::sim::networks
