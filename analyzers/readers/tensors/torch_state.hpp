// SPDX-License-Identifier: Apache-2.0
// The tensors that a pickle of torch.save holds, by name: those of nested dictionaries have their
// keys joined by dots ("model.layer.weight"), those of lists their places.
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

struct TorchState {
  std::vector<NamedTorchTensor> tensors;    ///< no name twice
  std::vector<log::SkippedTensor> skipped;  ///< objects that are not read
};

/// A tensor that is all the file holds is called `alone`. A pickle that names the same values again
/// and again is refused, as are containers in each other 200 deep: throws log::BadInput that begins
/// with `place` and ends with `advice`. Time and memory are bounded by `pickle_bytes`.
TorchState torch_state(const PickleValues& values, const std::string& alone,
                       std::uint64_t pickle_bytes, const std::string& place,
                       const std::string& advice);

}  // namespace halfscope::analyzers::readers::tensors
