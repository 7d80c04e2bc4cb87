// SPDX-License-Identifier: Apache-2.0
// safetensors files, mapped or read (mapped_file.hpp), and written whole. Format and validation:
// huggingface/safetensors, README "Format" and safetensors/src/tensor.rs.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/coded_tensors.hpp"
#include "halfscope/log/mapped_file.hpp"
#include "halfscope/log/open_file.hpp"
#include "halfscope/log/safetensors_header.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::log {

/// A tensor of any dtype ("U8", "F32", ...), as it is stored.
struct RawTensor {
  std::string name, dtype;
  std::vector<std::uint64_t> shape;
  FileBytes values;
};

/// Opens and validates a file: header size, JSON, offsets without gaps or overlap, sizes that match
/// shape and dtype. Tensors that are stored as codes are read as their values in binary32. Tensors
/// without floating-point numbers are in skipped(). Throws BadInput.
class Safetensors : public TensorFile {
 public:
  explicit Safetensors(const OpenPath& path);
  void for_each(const std::function<void(const NamedTensor&)>& visit) const override;
  /// Returns a tensor of any dtype, skipped ones too, or an empty optional if none has the name.
  /// Its values are valid while this object exists.
  std::optional<RawTensor> raw(std::string_view name) const;
  std::shared_ptr<const TensorBlocks> blocks(std::string_view name) const override;

 private:
  FileBytes values(const NamedTensor& tensor, std::uint64_t place) const override;
  void add_coded(CodedTensor&& tensor);
  void leave_before(std::uint64_t begin) const;

  MappedFile file_;
  std::uint64_t data_begin_ = 0;
  std::vector<SafetensorsEntry> others_;  ///< tensors of other dtypes, and parts of others
  std::vector<CodedTensor> coded_;        ///< a place from kCoded on is an index here
  const ReadEntry read_ = [this](const SafetensorsEntry& entry) {
    return file_.range(data_begin_ + entry.begin, data_begin_ + entry.end);
  };
  mutable std::atomic<std::uint64_t> left_ = 0;  ///< bytes of the file already released from memory
};

/// Writes to a temporary file and renames it to `path`, so that no incomplete file is visible.
/// Tensors with wide elements come first, equal widths in order of name, as in the format's own
/// library, so that every tensor is aligned for its type. Throws BadInput with the path if it
/// cannot be written, and with the tensor if two have the same name, a name is not UTF-8, or the
/// number of values does not match the shape.
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});
/// The same for tensors of any dtype of one byte or more, whose bytes must fit the shape.
void write_safetensors(const std::filesystem::path& path, std::vector<RawTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

/// Sorts the tensors as they are in the file, and returns the bytes before them: the header's
/// length and the header. `file`: the file's name in messages. Throws BadInput as above.
std::string safetensors_head(std::vector<RawTensor>& tensors,
                             const std::map<std::string, std::string>& metadata,
                             const std::string& file);

}  // namespace halfscope::log
