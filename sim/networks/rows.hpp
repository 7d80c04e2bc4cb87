// SPDX-License-Identifier: Apache-2.0
// Every network, one file each, and what they share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/networks/network.hpp"

namespace halfscope::sim {

Network mlp();
Network lenet();
Network resnet20();
Network resnet50();
Network tinyssd();
Network tinyssd_all_anchors();
Network charlstm();

/// The inputs of a batch, rounded to what the network's tensors are.
Tape::Value images_of(const Batch& batch, Tape& tape, Backend& backend, Dtype tensors);

/// Why data do not have images with one label each; empty where they do.
std::string refuses_all_but_labelled(const Data& data);

/// The loss of a classifier: the mean over rows.
void classify(Tape& tape, Tape::Value logits, const Batch& batch);
/// Rows whose largest logit is that of their label.
Score score_rows(Backend& backend, const Tensor& logits, std::span<const std::int32_t> labels);

}  // namespace halfscope::sim
