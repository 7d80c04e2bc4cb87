// SPDX-License-Identifier: Apache-2.0
// Named tensors of a file, mapped into memory. What all tensor readers give.
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

/// Elements of a shape: 1 for rank 0, 0 when any extent is. Empty when 64 bits do not hold it.
std::optional<std::uint64_t> element_count(const std::vector<std::uint64_t>& shape);
/// "[10, 20]"; a rank above eight is cut with "...", so that a message stays a line.
std::string shape_text(const std::vector<std::uint64_t>& shape);
/// How a message begins: "run/g.npz: tensor 'w'". `file` is printable already; a name of more than
/// 200 bytes is cut.
std::string place_text(std::string_view file, std::string_view tensor);

/// One tensor of a file. `view` stays valid as long as the file object lives.
struct NamedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  TensorView view;
};

/// A tensor that was left out, and why ("dtype I64 is not a floating-point type").
struct SkippedTensor {
  std::string name;
  std::string reason;
  bool may_be_bfloat16 = false;  ///< elements of 2 bytes whose type the file cannot name
};

/// An open file of tensors. Data is mapped, not read; what must be unpacked is unpacked a tensor at
/// a time.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  /// Calls `visit` for every readable tensor in file order; the view is valid during the call.
  virtual void for_each(const std::function<void(const NamedTensor&)>& visit) const = 0;
  virtual const std::vector<SkippedTensor>& skipped() const = 0;
  /// Names of the readable tensors in file order, without their data.
  virtual std::vector<std::string> names() const = 0;
  /// The same one by one: a file may have a million.
  virtual void for_each_name(const std::function<void(const std::string&)>& visit) const {
    for (const std::string& name : names()) visit(name);
  }
  /// One readable tensor; null where none has the name. Its view stays valid as long as both the
  /// pointer and the file live: what had to be unpacked is freed with the pointer.
  virtual std::shared_ptr<const NamedTensor> tensor(std::string_view name) const = 0;
  /// The same without its values, whose pointer is null: nothing is unpacked for it. Empty where
  /// none has the name.
  virtual std::optional<NamedTensor> outline(std::string_view name) const = 0;
  /// Bytes that all tensors take, the skipped ones too; empty where the file does not tell.
  virtual std::optional<std::uint64_t> tensor_bytes() const { return std::nullopt; }
  /// What of the file, names and values aside, shows that it holds a model's weights: "it ...".
  /// Empty where nothing does.
  virtual std::string shows_weights() const { return {}; }
};

}  // namespace halfscope::log
