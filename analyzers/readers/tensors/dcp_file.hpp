// SPDX-License-Identifier: Apache-2.0
// Reads checkpoints of torch.distributed.checkpoint: folders with a file ".metadata" and files such
// as "__0_0.distcp". Each rank writes its chunks of the tensors to its own files with torch.save.
#pragma once

#include <memory>
#include <optional>

#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Returns true for a checkpoint's ".metadata": by its content, or by ".distcp" files next to it.
bool is_dcp_metadata(const log::OpenPath& path);

/// Opens a checkpoint by the path of its ".metadata". A tensor in one chunk is mapped; a tensor in
/// several chunks is assembled in memory at each request. Tensors whose chunks cannot be read are
/// skipped, with the reason. Throws log::BadInput if the metadata cannot be read.
std::unique_ptr<log::TensorFile> open_dcp(const log::OpenPath& metadata,
                                          std::optional<Dtype> = std::nullopt);

}  // namespace halfscope::analyzers::readers::tensors
