// SPDX-License-Identifier: Apache-2.0
// Named tensors of a file, mapped into memory: the interface of all tensor readers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::log {

/// Number of elements of a shape: 1 for rank 0, 0 if any extent is 0. Empty if it exceeds 64 bits.
std::optional<std::uint64_t> element_count(const std::vector<std::uint64_t>& shape);
/// "[10, 20]"; a shape of more than eight dimensions is shortened with "...".
std::string shape_text(const std::vector<std::uint64_t>& shape);
/// Beginning of a message: "run/g.npz: tensor 'w'". `file` must be printable; a tensor name longer
/// than 200 bytes is shortened.
std::string place_text(std::string_view file, std::string_view tensor);

/// A tensor of a file. `view` is valid while the file object exists.
struct NamedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  TensorView view;
};

/// A tensor that was skipped, with the reason ("dtype I64 is not a floating-point type").
struct SkippedTensor {
  std::string name;
  std::string reason;
  bool may_be_bfloat16 = false;  ///< elements of 2 bytes whose type the file does not record
};

/// An open file of tensors. Data is mapped, not read; packed data is unpacked one tensor at a time.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  /// Calls `visit` for every readable tensor in file order; the view is valid during the call.
  virtual void for_each(const std::function<void(const NamedTensor&)>& visit) const = 0;
  virtual const std::vector<SkippedTensor>& skipped() const = 0;
  /// Names of the readable tensors in file order. Reads no data.
  virtual std::vector<std::string> names() const = 0;
  /// Calls `visit` for each name, since a file may have a million.
  virtual void for_each_name(const std::function<void(const std::string&)>& visit) const {
    for (const std::string& name : names()) visit(name);
  }
  /// Returns a readable tensor, or null if none has the name. Its view is valid while both the
  /// pointer and the file exist; unpacked values are freed with the pointer.
  virtual std::shared_ptr<const NamedTensor> tensor(std::string_view name) const = 0;
  /// Returns the tensor without its values (a null data pointer), so nothing is unpacked. Empty if
  /// there is none.
  virtual std::optional<NamedTensor> outline(std::string_view name) const = 0;
  /// Bytes of all tensors, including skipped ones; empty if the file does not record it.
  virtual std::optional<std::uint64_t> tensor_bytes() const { return std::nullopt; }
  /// Returns the evidence, other than names and values, that the file has a model's weights, as the
  /// end of a sentence "it ...". Empty if there is none.
  virtual std::string shows_weights() const { return {}; }
};

}  // namespace halfscope::log
