// SPDX-License-Identifier: Apache-2.0
// safetensors, mapped or read (mapped_file.hpp) and written whole. Format and validation:
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

/// Opens and validates a file: header size, JSON, offsets without holes or overlap, sizes that
/// match shape and dtype. Tensors of dtypes that hold no counted numbers are skipped, with the
/// reason. Throws BadInput.
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
  /// Libraries write the metadata "format" ("pt", ...) into the models that they save.
  std::string shows_weights() const override;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  /// A file may have a million tensors: their names lie one after the other, and their shapes.
  struct Entry {
    std::uint32_t name_end = 0, shape_end = 0;  ///< they begin where the entry's before end
    std::uint64_t begin = 0, count = 0;         ///< of the data
    Dtype dtype = Dtype::f32;
  };
  void add(const SafetensorsEntry& entry, Dtype dtype);
  std::string_view name_of(std::size_t place) const;
  NamedTensor at(std::size_t place) const;  ///< without its values
  std::optional<std::size_t> find(std::string_view name) const;
  std::shared_ptr<const NamedTensor> load(std::size_t place) const;
  std::uint64_t data_bytes() const;
  void leave_before(std::uint64_t begin) const;

  std::unique_ptr<MappedFile> file_;
  std::uint64_t data_begin_ = 0;
  std::vector<Entry> entries_;  ///< as the data lies
  std::string names_;
  std::vector<std::uint64_t> shapes_;
  std::vector<std::uint32_t> by_name_;  ///< into entries_
  std::vector<SkippedTensor> skipped_;
  std::map<std::string, std::string> metadata_;
  mutable std::atomic<std::uint64_t> left_ = 0;  ///< bytes of the file that do not stay in memory
};

/// Writes a file beside `path` and renames it into place, so that no half-written file is ever
/// seen. Wide elements come first and equal widths by name, as the format's own library does it, so
/// that every tensor is aligned for its type. Throws BadInput naming the path when it cannot be
/// written, and the tensor when two have one name, a name is not UTF-8, or a view does not fill its
/// shape.
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace halfscope::log
