// SPDX-License-Identifier: Apache-2.0
// Reads the metadata of a checkpoint of torch.distributed.checkpoint: a pickled `Metadata` object
// (torch/distributed/checkpoint/metadata.py), read as data only (torch_pickle.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/readers/tensors/torch_pickle.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// A chunk of a tensor: its box in the tensor, and the place of its bytes, which torch.save wrote.
struct DcpChunk {
  std::vector<std::uint64_t> offsets, sizes;  ///< first index and extent of the box, for each axis
  std::string file;                           ///< name of a file in the checkpoint's folder
  std::uint64_t offset = 0, length = 0;       ///< bytes in the file
};

/// A tensor of a checkpoint. `chunks` do not overlap and fill the shape `size`.
struct DcpTensor {
  std::string name;
  const TorchType* type = nullptr;
  std::vector<std::uint64_t> size;
  std::vector<DcpChunk> chunks;
};

/// Reads the tensors from a pickled Metadata object, in its order. Adds those with an unsupported
/// dtype, or with missing or wrong chunks, to `skipped`. Throws log::BadInput for any other pickle;
/// the message begins with `place`.
std::vector<DcpTensor> read_dcp_metadata(std::span<const std::byte> pickle,
                                         const std::string& place,
                                         std::vector<log::SkippedTensor>& skipped);

}  // namespace halfscope::analyzers::readers::tensors
