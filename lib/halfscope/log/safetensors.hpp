// SPDX-License-Identifier: Apache-2.0
// safetensors files, mapped or read (mapped_file.hpp), and written whole. Format and validation:
// huggingface/safetensors, README "Format" and safetensors/src/tensor.rs.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::log {

class MappedFile;
struct SafetensorsEntry;

/// Opens and validates a file: header size, JSON, offsets without gaps or overlap, sizes that match
/// shape and dtype. Tensors without floating-point numbers are in skipped(). Throws BadInput.
class Safetensors : public TensorFile {
 public:
  explicit Safetensors(const OpenPath& path);
  ~Safetensors() override;

  void for_each(const std::function<void(const NamedTensor&)>& visit) const override;
  const std::vector<SkippedTensor>& skipped() const override { return skipped_; }
  std::vector<std::string> names() const override;
  void for_each_name(const std::function<void(const std::string&)>& visit) const override;
  std::shared_ptr<const NamedTensor> tensor(std::string_view name) const override;
  std::optional<NamedTensor> outline(std::string_view name) const override;
  std::optional<std::uint64_t> tensor_bytes() const override { return data_bytes(); }
  /// Uses the metadata "format" ("pt", ...), which libraries write into saved models.
  std::string shows_weights() const override;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  /// A tensor. For files of a million tensors, names and shapes are stored in names_ and shapes_.
  struct Entry {
    std::uint32_t name_end = 0, shape_end = 0;  ///< the previous entry's ends are the beginnings
    std::uint64_t begin = 0, count = 0;         ///< offset and number of elements of the data
    Dtype dtype = Dtype::f32;
  };
  void add(const SafetensorsEntry& entry, Dtype dtype);
  std::string_view name_of(std::size_t place) const;
  NamedTensor at(std::size_t place) const;  ///< the tensor without its values
  std::optional<std::size_t> find(std::string_view name) const;
  std::shared_ptr<const NamedTensor> load(std::size_t place) const;
  std::uint64_t data_bytes() const;
  void leave_before(std::uint64_t begin) const;

  std::unique_ptr<MappedFile> file_;
  std::uint64_t data_begin_ = 0;
  std::vector<Entry> entries_;  ///< in the order of the data
  std::string names_;
  std::vector<std::uint64_t> shapes_;
  std::vector<std::uint32_t> by_name_;  ///< indices into entries_, by name
  std::vector<SkippedTensor> skipped_;
  std::map<std::string, std::string> metadata_;
  mutable std::atomic<std::uint64_t> left_ = 0;  ///< bytes of the file already released from memory
};

/// Writes to a temporary file and renames it to `path`, so that no incomplete file is visible.
/// Tensors with wide elements come first, equal widths in order of name, as in the format's own
/// library, so that every tensor is aligned for its type. Throws BadInput with the path if it
/// cannot be written, and with the tensor if two have the same name, a name is not UTF-8, or the
/// number of values does not match the shape.
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace halfscope::log
