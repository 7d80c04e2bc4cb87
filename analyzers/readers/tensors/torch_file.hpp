// SPDX-License-Identifier: Apache-2.0
// Files of torch.save since PyTorch 1.6: a ZIP archive of a pickle and of storages' bytes. Format:
// torch/serialization.py. Nothing is ever unpickled by Python or imported (torch_pickle.hpp); what
// is no plain tensor in plain containers is skipped, with the reason.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

class ZipArchive;

/// How torch.save began a file before PyTorch 1.6: a pickled number (torch/serialization.py,
/// MAGIC_NUMBER).
inline constexpr std::string_view kOldTorchStart = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9";

/// Whether an archive holds what torch.save packs its tensors' structure as ("archive/data.pkl"),
/// and no arrays.
bool is_torch_archive(const ZipArchive& archive);

/// Storages are mapped; only views that are not contiguous, and big-endian data, are copied, a
/// tensor at a time. Throws log::BadInput that says how to convert the file: TorchScript, a pickle
/// that cannot be followed, tensors that leave their storage.
std::unique_ptr<log::TensorFile> open_torch(const std::filesystem::path& path,
                                            std::unique_ptr<ZipArchive> archive);

/// Throws log::BadInput that says how to convert the file.
std::unique_ptr<log::TensorFile> refuse_old_torch(const log::OpenPath& path,
                                                  std::optional<Dtype> as);

}  // namespace halfscope::analyzers::readers::tensors
