// SPDX-License-Identifier: Apache-2.0
// Networks. A new network needs a file in networks/ with its function, and a row in networks.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/autograd/tape.hpp"
#include "sim/data/data.hpp"

namespace halfscope::sim::networks {

/// Result of an evaluation: `right` of `of` answers are right.
struct Score {
  std::uint64_t right = 0, of = 0;
};

struct Network {
  std::string_view name, what;  ///< "lenet", "two convolutions, two dense layers"
  std::string_view data;        ///< default data set
  double learning_rate = 0.1;   ///< suitable for the default data and optimizer
  std::int64_t batch = 32, steps = 1000;
  /// Computes the forward pass of a batch and its loss on the tape.
  void (*forward)(autograd::Tape& tape, backend::Backend& backend, const data::Batch& batch,
                  Dtype tensors, const data::Data& data);
  /// Returns why data of this shape cannot be used; an empty string if they can be.
  std::string (*refuses)(const data::Data& data);
  /// Scores a batch: runs the forward pass without the loss, on a tape that is not for training.
  /// The score of detectors is defined in networks/detections.hpp. Null if it cannot be scored.
  Score (*score)(autograd::Tape& tape, backend::Backend& backend, const data::Batch& batch,
                 Dtype tensors, const data::Data& data) = nullptr;
};

std::span<const Network> networks();
const Network* find_network(std::string_view name);

}  // namespace halfscope::sim::networks
