// SPDX-License-Identifier: Apache-2.0
// safetensors, read by mapping and written whole. Format and validation: huggingface/safetensors,
// README "Format" and safetensors/src/tensor.rs.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::log {

class MappedFile;

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
  std::shared_ptr<const NamedTensor> tensor(std::string_view name) const override;
  std::optional<NamedTensor> outline(std::string_view name) const override;
  std::optional<std::uint64_t> tensor_bytes() const override { return data_bytes_; }
  /// Libraries write the metadata "format" ("pt", ...) into the models that they save.
  std::string shows_weights() const override;
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::unique_ptr<MappedFile> file_;
  std::uint64_t data_bytes_ = 0;
  std::vector<NamedTensor> tensors_;
  std::map<std::string_view, const NamedTensor*> by_name_;  ///< into tensors_
  std::vector<SkippedTensor> skipped_;
  std::map<std::string, std::string> metadata_;
};

/// Writes a file beside `path` and renames it into place, so that no half-written file is ever
/// seen. Wide elements come first and equal widths by name, as the format's own library does it, so
/// that every tensor is aligned for its type. Throws BadInput naming the path when it cannot be
/// written, and the tensor when two have one name, a name is not UTF-8, or a view does not fill its
/// shape.
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace halfscope::log
