// SPDX-License-Identifier: Apache-2.0
// Tensors of safetensors files that are stored as codes: elements of 4 to 8 bits, alone or with
// scales as quantisers write them. docs/logs.md lists the names and types.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/mapped_file.hpp"
#include "halfscope/log/safetensors_header.hpp"
#include "halfscope/log/tensor_blocks.hpp"

namespace halfscope::log {

/// A tensor and the entries of the header that hold it.
struct CodedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  ///< of its values
  SafetensorsEntry codes;
  std::optional<SafetensorsEntry> scales = {}, second = {};
  bool second_divides = false;     ///< block scales are divided by the second scale
  std::vector<std::string> parts;  ///< names of all entries that are only shown as this tensor
  TensorBlocks blocks = {};        ///< without factors
};

/// Returns the bits of a code, or 0 if the dtype is none of F4, F6_E2M3, F6_E3M2, F8_E8M0,
/// F8_E4M3FNUZ and F8_E5M2FNUZ.
unsigned code_bits(std::string_view dtype);

/// Returns the tensors that are stored as codes, in the order of the entries. `file`: name for
/// messages. Throws BadInput if scales are missing or do not fit the codes.
std::vector<CodedTensor> coded_tensors(const SafetensorsHeader& header, const std::string& file);

using ReadEntry = std::function<FileBytes(const SafetensorsEntry&)>;

/// Returns the blocks with their factors; a tensor without scales is one block with the factor 1.
/// Throws BadInput if a scale is NaN or infinite.
TensorBlocks blocks_of(const CodedTensor& tensor, const ReadEntry& read, const std::string& file);

/// Returns the values in binary32. Throws as blocks_of().
FileBytes decoded(const CodedTensor& tensor, const ReadEntry& read, const std::string& file);

}  // namespace halfscope::log
