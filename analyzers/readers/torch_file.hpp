// SPDX-License-Identifier: Apache-2.0
// Files of torch.save: pickled Python, which only Python can run. Recognised to say so.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "halfscope/log/tensor_file.hpp"

namespace halfscope::readers {

/// How torch.save began a file before PyTorch 1.6: a pickled number (torch/serialization.py,
/// MAGIC_NUMBER).
inline constexpr std::string_view kOldTorchStart = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9";

/// Whether a ZIP member is what torch.save packs its tensors' structure as ("archive/data.pkl").
bool is_torch_member(std::string_view name);

/// Throws log::BadInput that says how to convert the file.
std::unique_ptr<log::TensorFile> refuse_torch_file(const std::filesystem::path& path);

}  // namespace halfscope::readers
