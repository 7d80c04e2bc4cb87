// SPDX-License-Identifier: Apache-2.0
// Named tensors of a file, mapped into memory: the interface of all tensor readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/mapped_file.hpp"
#include "halfscope/table/count/count.hpp"

namespace halfscope::log {

struct TensorBlocks;

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
/// A derived class adds its tensors in the constructor, then calls index_names(), and reads values.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  /// Number of readable tensors.
  std::size_t size() const { return tensors_.entries.size(); }
  /// Calls `visit` for every readable tensor in file order; the view is valid during the call.
  virtual void for_each(const std::function<void(const NamedTensor&)>& visit) const;
  /// Names of the readable tensors in file order. Reads no data.
  std::vector<std::string> names() const;
  /// Calls `visit` for each name, since a file may have a million.
  void for_each_name(const std::function<void(const std::string&)>& visit) const;
  /// Returns a readable tensor, or null if none has the name. Its view is valid while both the
  /// pointer and the file exist; unpacked values are freed with the pointer.
  std::shared_ptr<const NamedTensor> tensor(std::string_view name) const;
  /// Returns the tensor without its values (a null data pointer), so nothing is unpacked. Empty if
  /// there is none.
  std::optional<NamedTensor> outline(std::string_view name) const;
  const std::vector<SkippedTensor>& skipped() const { return skipped_; }
  /// Bytes of all tensors, including skipped ones; empty if the file does not record it.
  std::optional<std::uint64_t> tensor_bytes() const { return tensor_bytes_; }
  /// Returns the evidence, other than names and values, that the file has a model's weights, as the
  /// end of a sentence "it ...". Empty if there is none.
  const std::string& shows_weights() const { return shows_weights_; }
  /// Returns the blocks of a readable tensor that the file stores as codes with scales, else null.
  /// Throws BadInput if a scale is not finite.
  virtual std::shared_ptr<const TensorBlocks> blocks(std::string_view) const { return nullptr; }
  /// Names of the stored tensors that are read as one, the codes first, by the name of that one.
  using Parts = std::map<std::string, std::vector<std::string>, std::less<>>;
  const Parts& parts() const { return parts_; }
  /// The texts that a safetensors file stores beside its tensors. Empty for other files.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// Removes the tensors, readable or skipped, whose names (those of their codes, if they are
  /// stored so) are not in `names`.
  void keep_only(const std::set<std::string>& names);
  /// Gives the only readable tensor, and every skipped one, another name.
  void rename(const std::string& name);

 protected:
  TensorFile() = default;
  /// Adds a readable tensor. `place` is a number by which values() finds it.
  void add(std::string_view name, std::span<const std::uint64_t> shape, Dtype dtype,
           std::uint64_t place);
  /// Builds the index of names. Call it after the last add().
  void index_names();
  /// Returns tensor i with its values.
  std::shared_ptr<const NamedTensor> load(std::size_t i) const;
  /// Returns tensor i without its values.
  NamedTensor outline_at(std::size_t i) const;
  std::uint64_t place(std::size_t i) const { return tensors_.entries[i].place; }
  /// Returns the index of the tensor with a name.
  std::optional<std::size_t> find(std::string_view name) const;
  /// Returns the values of a tensor, which is given without them: little-endian, in C order.
  virtual FileBytes values(const NamedTensor& tensor, std::uint64_t place) const = 0;

  std::vector<SkippedTensor> skipped_;
  std::optional<std::uint64_t> tensor_bytes_;
  std::string shows_weights_;
  std::map<std::string, std::string> metadata_;
  Parts parts_;

 private:
  /// The readable tensors. For files of a million, names and shapes are stored end to end.
  struct Tensors {
    struct Entry {
      std::uint64_t name_end, shape_end;  ///< the previous entry's ends are the beginnings
      std::uint64_t place;
      Dtype dtype;
    };
    std::string_view name(std::size_t i) const;
    std::span<const std::uint64_t> shape(std::size_t i) const;

    std::vector<Entry> entries;
    std::string names;
    std::vector<std::uint64_t> shapes;
  };

  Tensors tensors_;
  std::vector<std::uint32_t> by_name_;  ///< indices into the entries, by name
};

}  // namespace halfscope::log
