// SPDX-License-Identifier: Apache-2.0
// The networks. To add one: a file in networks/ with a function, and a row in networks.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/autograd/tape.hpp"
#include "sim/data/data.hpp"

namespace halfscope::sim::networks {

/// What evaluation counts.
struct Score {
  std::uint64_t right = 0, of = 0;
};

struct Network {
  std::string_view name, what;  ///< "lenet", "two convolutions, two dense layers"
  std::string_view data;        ///< data it is trained on unless told otherwise
  double learning_rate = 0.1;   ///< that serves with the default data and optimizer
  std::int64_t batch = 32, steps = 1000;
  /// The forward pass of a batch and its loss, on the tape.
  void (*forward)(autograd::Tape& tape, backend::Backend& backend, const data::Batch& batch,
                  Dtype tensors, const data::Data& data);
  /// Whether data of this shape can be used; why not, or empty.
  std::string (*refuses)(const data::Data& data);
  /// Right answers of a batch: runs the forward pass, without a loss, on a tape that is not for
  /// training; may be null. Of a detector networks/detections.hpp says what that is.
  Score (*score)(autograd::Tape& tape, backend::Backend& backend, const data::Batch& batch,
                 Dtype tensors, const data::Data& data) = nullptr;
};

std::span<const Network> networks();
const Network* find_network(std::string_view name);

}  // namespace halfscope::sim::networks
