// SPDX-License-Identifier: Apache-2.0
// Opens files of tensors with the reader that their content needs.
#pragma once

#include <memory>
#include <optional>

#include "halfscope/log/error.hpp"
#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Thrown if a file is text, so that the caller can let the readers of text report more.
class IsText : public log::BadInput {
 public:
  using BadInput::BadInput;
};

/// Opens a file of safetensors, NPY, NPZ or torch.save, or a DCP checkpoint by its ".metadata".
/// `as`: see read_npy_header(). Throws log::BadInput that names the content; IsText for text.
std::unique_ptr<log::TensorFile> open_tensor_file(const log::OpenPath& path,
                                                  std::optional<Dtype> as = std::nullopt);

}  // namespace halfscope::analyzers::readers::tensors
