// SPDX-License-Identifier: Apache-2.0
// Which reader a file of tensors needs, by its content.
#pragma once

#include <memory>
#include <optional>

#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Opens a safetensors, NPY, NPZ or torch.save file. `as` (f16 or bf16): what NPY elements of 2
/// bytes without a type stand for. Throws log::BadInput that lists what is understood.
std::unique_ptr<log::TensorFile> open_tensor_file(const log::OpenPath& path,
                                                  std::optional<Dtype> as = std::nullopt);

}  // namespace halfscope::analyzers::readers::tensors
