// SPDX-License-Identifier: Apache-2.0
// Which reader a file of tensors needs, by its content.
#pragma once

#include <filesystem>
#include <memory>

#include "halfscope/log/tensor_file.hpp"

namespace halfscope::readers {

/// Opens a safetensors, NPY or NPZ file. Throws log::BadInput that lists what is understood.
std::unique_ptr<log::TensorFile> open_tensor_file(const std::filesystem::path& path);

}  // namespace halfscope::readers
