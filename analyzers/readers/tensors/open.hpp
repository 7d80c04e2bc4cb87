// SPDX-License-Identifier: Apache-2.0
// Opens files of tensors with the reader that their content needs.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "halfscope/log/error.hpp"
#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

class ZipArchive;

/// Thrown if a file is text, so that the caller can let the readers of text report more.
class IsText : public log::BadInput {
 public:
  using BadInput::BadInput;
};

/// Opens a file of safetensors, NPY, NPZ or torch.save, or a DCP checkpoint by its ".metadata".
/// `as`: see read_npy_header(). Throws log::BadInput that names the content; IsText for text.
std::unique_ptr<log::TensorFile> open_tensor_file(const log::OpenPath& path,
                                                  std::optional<Dtype> as = std::nullopt);

/// Opens an NPY file: one tensor, named like the file's stem. Only big-endian or Fortran-order data
/// is copied; else it is mapped. Throws log::BadInput.
std::unique_ptr<log::TensorFile> open_npy(const log::OpenPath& path,
                                          std::optional<Dtype> as = std::nullopt);

/// Opens an NPZ archive: one tensor for each member, named like the member without ".npy". All
/// headers are read here. Stored members are mapped; deflated members are unpacked when they are
/// loaded, which throws log::BadInput if data is damaged. Throws log::BadInput if open_npy() would
/// refuse one of the arrays. Not for use by two threads at once.
std::unique_ptr<log::TensorFile> open_npz(std::unique_ptr<ZipArchive> archive,
                                          std::optional<Dtype> as = std::nullopt);

/// Opens a file that torch.save of PyTorch 1.6 or later wrote. Storages are mapped; only
/// non-contiguous views and big-endian data are copied, one tensor at a time. Objects other than
/// plain tensors in plain containers are skipped, with the reason. Throws log::BadInput for
/// TorchScript, for a pickle that cannot be read, and for tensors that exceed their storage.
std::unique_ptr<log::TensorFile> open_torch(const std::filesystem::path& path,
                                            std::unique_ptr<ZipArchive> archive);
/// Returns true if an archive holds a pickle such as "archive/data.pkl", but no NPY arrays.
bool is_torch_archive(const ZipArchive& archive);
/// First bytes of torch.save's files before PyTorch 1.6 (torch/serialization.py, MAGIC_NUMBER).
inline constexpr std::string_view kOldTorchStart = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9";
/// Throws log::BadInput for such a file; the message says how to convert it.
std::unique_ptr<log::TensorFile> refuse_old_torch(const log::OpenPath& path, std::optional<Dtype>);

/// Opens a checkpoint of torch.distributed.checkpoint by the path of its ".metadata". Each rank
/// wrote its chunks of the tensors to its own files ("__0_0.distcp") with torch.save. A tensor in
/// one chunk is mapped; a tensor in several chunks is assembled in memory at each request. Tensors
/// whose chunks cannot be read are skipped, with the reason. Throws log::BadInput if the metadata
/// cannot be read.
std::unique_ptr<log::TensorFile> open_dcp(const log::OpenPath& metadata);
/// Returns true for a checkpoint's ".metadata": by its content, or by ".distcp" files next to it.
bool is_dcp_metadata(const log::OpenPath& path);

}  // namespace halfscope::analyzers::readers::tensors
