// SPDX-License-Identifier: Apache-2.0
// Tensors of safetensors files that are stored as codes: elements of 4 to 8 bits, alone or with
// scales as quantisers write them. docs/logs.md lists the names and types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/mapped_file.hpp"
#include "halfscope/log/safetensors_header.hpp"

namespace halfscope::log {

/// The blocks of a tensor. Codes are `layers` matrices of `rows` by `columns`, cut into blocks that
/// share a factor; blocks at the edges may be smaller. A value is its code's number times the
/// factor, rounded to binary32.
struct TensorBlocks {
  std::string element, scale;  ///< formats of the codes and of the scales: "E2M1", "E4M3"
  std::uint64_t layers = 1, rows = 1, columns = 1;
  std::uint64_t block_rows = 1, block_columns = 1;
  bool transposed = false;          ///< the values are matrices of `columns` by `rows`
  float largest = 0;                ///< the largest number of a code
  float clipped_above = 0;          ///< `largest` and half its distance from the number before it
  std::vector<float> factors = {};  ///< one for each block, row after row

  std::uint64_t down() const { return (rows + block_rows - 1) / block_rows; }
  std::uint64_t across() const { return (columns + block_columns - 1) / block_columns; }

  /// Calls visit(code, value) for each element of a block: its index among the codes, and its index
  /// among the values.
  template <typename Visit>
  void for_each_element(std::uint64_t block, const Visit& visit) const {
    const std::uint64_t line = block / across(), layer = line / down();
    const std::uint64_t top = line % down() * block_rows, left = block % across() * block_columns;
    const std::uint64_t bottom = std::min(rows, top + block_rows);
    const std::uint64_t right = std::min(columns, left + block_columns);
    for (std::uint64_t r = top; r < bottom; ++r) {
      for (std::uint64_t c = left; c < right; ++c) {
        const std::uint64_t code = (layer * rows + r) * columns + c;
        visit(code, transposed ? (layer * columns + c) * rows + r : code);
      }
    }
  }
};

/// A tensor and the entries of the header that hold it.
struct CodedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  ///< shape of the values
  SafetensorsEntry codes;
  std::optional<SafetensorsEntry> scales = {}, second = {};
  bool second_divides = false;          ///< block scales are divided by the second scale
  std::vector<std::string> parts = {};  ///< names of all entries that are read as this tensor
  TensorBlocks blocks = {};             ///< without factors
};

/// Returns the bits of a code, or 0 if the dtype is not one that is read as codes even without
/// scales: F4, F6_E2M3, F6_E3M2, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ.
unsigned code_bits(std::string_view dtype);

/// Returns the names that the scales of an 8-bit tensor may have in its file.
std::vector<std::string> scale_names(const std::string& codes);

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
