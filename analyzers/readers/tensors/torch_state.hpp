// SPDX-License-Identifier: Apache-2.0
// Finds and names the tensors in a pickle of torch.save. A name is the path to the tensor: keys of
// dictionaries and indices in lists, joined by dots ("model.layer.weight", "params.0").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/readers/tensors/torch_pickle.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// A tensor's name, and its index in PickleValues.
struct NamedTorchTensor {
  std::string name;
  std::uint32_t tensor = 0;
};

/// The tensors of a pickle.
struct TorchState {
  std::vector<NamedTorchTensor> tensors;    ///< all names differ
  std::vector<log::SkippedTensor> skipped;  ///< objects that are not read, with the reason
};

/// Finds the tensors of a pickle. A tensor that is the whole content is named `alone`. Throws
/// log::BadInput if values repeat too often or containers nest more than 200 deep; the message
/// begins with `place` and ends with `advice`. Time and memory are proportional to `pickle_bytes`.
TorchState torch_state(const PickleValues& values, const std::string& alone,
                       std::uint64_t pickle_bytes, const std::string& place,
                       const std::string& advice);

}  // namespace halfscope::analyzers::readers::tensors
