// SPDX-License-Identifier: Apache-2.0
// Which reader a file of tensors needs, by its content.
#pragma once

#include <memory>
#include <optional>

#include "halfscope/log/error.hpp"
#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// What is thrown for text: it is no file of tensors, and whoever reads lines can say more of it.
class IsText : public log::BadInput {
 public:
  using BadInput::BadInput;
};

/// Opens a safetensors, NPY, NPZ or torch.save file. `as` (f16 or bf16): what NPY elements of 2
/// bytes without a type stand for. Throws log::BadInput that says what the file is.
std::unique_ptr<log::TensorFile> open_tensor_file(const log::OpenPath& path,
                                                  std::optional<Dtype> as = std::nullopt);

}  // namespace halfscope::analyzers::readers::tensors
