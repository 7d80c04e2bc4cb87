// SPDX-License-Identifier: Apache-2.0
// What a checkpoint of torch.distributed.checkpoint says of itself: a pickled `Metadata` in the
// file
// ".metadata" (torch/distributed/checkpoint/metadata.py). It is read as data (torch_pickle.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/readers/tensors/torch_names.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// A box of a tensor, and where it lies: bytes of a file of the folder, which torch.save wrote.
struct DcpChunk {
  std::vector<std::uint64_t> offsets, sizes;
  std::string file;
  std::uint64_t offset = 0, length = 0;
};

struct DcpTensor {
  std::string name;
  const TorchType* type = nullptr;
  std::vector<std::uint64_t> size;
  std::vector<DcpChunk> chunks;
};

struct DcpMetadata {
  std::vector<DcpTensor> tensors;           ///< in the file's order
  std::vector<log::SkippedTensor> skipped;  ///< of which no place is told, or none that fits
};

/// Chunks of each tensor lie in it, do not overlap and fill it. Throws log::BadInput that begins
/// with `place` for what is no such pickle.
DcpMetadata read_dcp_metadata(std::span<const std::byte> pickle, const std::string& place);

}  // namespace halfscope::analyzers::readers::tensors
