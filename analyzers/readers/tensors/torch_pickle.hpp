// SPDX-License-Identifier: Apache-2.0
// Reads a pickle of torch.save as data: interprets the opcodes that build plain containers and
// tensors. Nothing is imported or called. Names that stand for tensors are recognised; all other
// objects stay opaque. Opcodes: Python's pickletools, protocols 2 to 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::readers::tensors {

/// An element type of PyTorch: c10/core/ScalarType.h.
struct TorchType {
  std::string_view storage;  ///< class of its typed storage ("HalfStorage"); empty if there is none
  std::string_view dtype;    ///< name in PyTorch, such as "float16"
  unsigned width = 0;        ///< bytes per element
  std::optional<Dtype> counted = {};  ///< the dtype here; empty if such tensors are skipped
  std::string_view skip = {};         ///< if skipped: the reason, after "dtype ... "
};

/// The meaning of a global name in a pickle.
enum class TorchName : std::uint8_t {
  ordered_dict,  ///< collections.OrderedDict(items)
  size,          ///< torch.Size((extents))
  storage,       ///< class of a storage, which determines its element type
  dtype,         ///< torch.bfloat16
  tensor_class,  ///< torch.Tensor, torch.nn.Parameter
  tensor,        ///< _rebuild_tensor(storage, offset, size, stride)
  tensor_v2,     ///< arguments of `tensor`, then requires_grad, hooks[, metadata]
  tensor_v3,     ///< arguments of `tensor_v2`, then dtype[, metadata]; the storage is untyped
  parameter,     ///< _rebuild_parameter(tensor, ...)
  from_type,     ///< _rebuild_from_type_v2(function, class, arguments, attributes)
  record,        ///< a class whose objects are read as dictionaries of their fields
  other          ///< makes objects that hold no tensors, such as torch.device
};

/// A global name of a pickle, with its meaning.
struct TorchGlobal {
  TorchName what = TorchName::other;
  const TorchType* type = nullptr;  ///< for storage and dtype; null for an untyped storage
};

/// Returns the meaning of a global name. Empty if the name is unknown.
std::optional<TorchGlobal> find_torch_global(std::string_view module, std::string_view name);

/// Largest pickle that is read, in bytes. Its values need at most about 40 times as much.
inline constexpr std::uint64_t kLongestPickle = std::uint64_t{1} << 28;

/// Index into PickleValues::values.
using ValueId = std::uint32_t;

/// The type of a value in a pickle.
enum class ValueKind : std::uint8_t {
  plain,    ///< None, a bool, a float, bytes, ...: holds no tensor, and its value is not kept
  integer,  ///< at most 64 bits
  text,
  list,
  tuple,
  dict,
  global,  ///< a known class, function or dtype
  storage,
  tensor,
  opaque  ///< an object that is not read (OpaqueObject)
};

/// A value of a pickle. `index` refers to the vector of its kind in PickleValues. `number` is the
/// value of an integer, the length of a tuple, and 1 for a dict that is a TorchName::record.
struct PickleValue {
  ValueKind kind = ValueKind::plain;
  std::uint32_t index = 0;
  std::int64_t number = 0;
};

/// A storage: a member of the archive that holds elements of one type.
struct TorchStorage {
  std::string_view key;             ///< name of the member in the archive's folder "data"
  const TorchType* type = nullptr;  ///< null for an untyped storage
  std::uint64_t count = 0;          ///< number of elements; of bytes if untyped
};

/// A tensor as the pickle describes it. Not yet checked against the size of the storage.
struct TorchTensor {
  std::uint32_t storage = 0;  ///< index into PickleValues::storages
  const TorchType* type = nullptr;
  std::uint64_t offset = 0;        ///< first element, counted in elements of the storage
  ValueId shape = 0, strides = 0;  ///< tuples of equal length; integers, none negative
};

/// An object that is not read.
struct OpaqueObject {
  /// The class or function that makes it. If `module` is empty, `name` is the reason instead.
  std::string_view module, name;
};

/// The values of a pickle. Texts point into the pickle.
struct PickleValues {
  std::vector<PickleValue> values;
  std::vector<std::string_view> texts;
  std::vector<std::vector<ValueId>> lists;  ///< lists, and dicts as key, value, key, value, ...
  std::vector<ValueId> tuples;              ///< items of all tuples, concatenated
  std::vector<TorchGlobal> globals;
  std::vector<TorchStorage> storages;
  std::vector<TorchTensor> tensors;
  std::vector<OpaqueObject> opaque;
  ValueId root = 0;
  bool has_parameters = false;  ///< holds a module's state_dict() or a torch.nn.Parameter

  ValueKind kind(ValueId id) const { return values[id].kind; }
  /// Returns the items of a list, tuple or dict (keys and values in turn); for other values an
  /// empty span. Valid until a value is added.
  std::span<const ValueId> items(ValueId id) const;
};

/// Reads a pickle; the result points into it. Throws log::BadInput if the pickle cannot be read;
/// the message begins with `place` ("m.pt: data.pkl"), names the opcode and its position, and ends
/// with `advice`. Time and memory are proportional to the pickle's length.
PickleValues read_torch_pickle(std::span<const std::byte> pickle, const std::string& place,
                               const std::string& advice);

}  // namespace halfscope::analyzers::readers::tensors
