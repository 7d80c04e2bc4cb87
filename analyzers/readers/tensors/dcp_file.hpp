// SPDX-License-Identifier: Apache-2.0
// Checkpoints of torch.distributed.checkpoint: a folder with ".metadata" and files such as
// "__0_0.distcp", in which every rank wrote its chunks of the tensors, each by torch.save.
#pragma once

#include <memory>
#include <optional>

#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Whether it is the ".metadata" of one: by its content, or since files of ranks lie beside it.
bool is_dcp_metadata(const log::OpenPath& path);

/// The tensors of a checkpoint, by the path of its ".metadata". A tensor in one chunk is mapped,
/// one in several is put together when it is asked for. Tensors whose chunks cannot be read are
/// skipped, with the reason. Throws log::BadInput where the metadata cannot be read.
std::unique_ptr<log::TensorFile> open_dcp(const log::OpenPath& metadata,
                                          std::optional<Dtype> = std::nullopt);

}  // namespace halfscope::analyzers::readers::tensors
