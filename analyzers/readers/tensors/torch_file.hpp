// SPDX-License-Identifier: Apache-2.0
// Reads files of torch.save since PyTorch 1.6: ZIP archives of a pickle and the bytes of storages.
// Format: torch/serialization.py. No Python code runs (torch_pickle.hpp). Objects other than plain
// tensors in plain containers are skipped, with the reason.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

class ZipArchive;

/// First bytes of torch.save's files before PyTorch 1.6 (torch/serialization.py, MAGIC_NUMBER).
inline constexpr std::string_view kOldTorchStart = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9";

/// Returns true if an archive holds a pickle such as "archive/data.pkl", but no NPY arrays.
bool is_torch_archive(const ZipArchive& archive);

/// Opens a file of torch.save. Storages are mapped; only non-contiguous views and big-endian data
/// are copied, one tensor at a time. Throws log::BadInput for TorchScript, for a pickle that cannot
/// be read, and for tensors that exceed their storage.
std::unique_ptr<log::TensorFile> open_torch(const std::filesystem::path& path,
                                            std::unique_ptr<ZipArchive> archive);

/// Throws log::BadInput for a file from before PyTorch 1.6; the message says how to convert it.
std::unique_ptr<log::TensorFile> refuse_old_torch(const log::OpenPath& path,
                                                  std::optional<Dtype> as);

}  // namespace halfscope::analyzers::readers::tensors
