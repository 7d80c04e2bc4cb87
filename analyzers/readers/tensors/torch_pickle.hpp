// SPDX-License-Identifier: Apache-2.0
// What a pickle of torch.save says, as data: an interpreter of the opcodes that plain containers
// and tensors are made of. It imports nothing and calls nothing: the names that stand for tensors
// are recognised (torch_names.hpp), every other object is opaque, and stays so whatever is done to
// it. Opcodes: Python's pickletools, protocols 2 to 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/readers/tensors/torch_names.hpp"

namespace halfscope::analyzers::readers::tensors {

/// The longest pickle that is read. Values take some 40 times its bytes at most.
inline constexpr std::uint64_t kLongestPickle = std::uint64_t{1} << 28;

using ValueId = std::uint32_t;

enum class ValueKind : std::uint8_t {
  plain,    ///< None, True, a fraction, bytes, ...: nothing that is or holds a tensor
  integer,  ///< 64 bits
  text,
  list,
  tuple,
  dict,
  global,  ///< a name that is known
  storage,
  tensor,
  opaque
};

/// A value; `index` is into what PickleValues has of its kind. Of an integer, `number` is it, of a
/// tuple, its length, of a dict, whether it is a record.
struct PickleValue {
  ValueKind kind = ValueKind::plain;
  std::uint32_t index = 0;
  std::int64_t number = 0;
};

/// A storage: a member of the archive, with so many elements of a type.
struct TorchStorage {
  std::string_view key;
  const TorchType* type = nullptr;  ///< null: bytes
  std::uint64_t count = 0;
};

/// A tensor as the pickle describes it; nothing has been compared with the storage's bytes.
struct TorchTensor {
  std::uint32_t storage = 0;  ///< index
  const TorchType* type = nullptr;
  std::uint64_t offset = 0;        ///< of the first element, in elements
  ValueId shape = 0, strides = 0;  ///< tuples of as many integers, none of them negative
};

/// An object that is not read, and why.
struct OpaqueObject {
  std::string_view module, name;  ///< of what made it; `module` empty: `name` is the reason
};

struct PickleValues {
  std::vector<PickleValue> values;
  std::vector<std::string_view> texts;
  std::vector<std::vector<ValueId>> lists;  ///< and, as keys and values in turn, dicts
  std::vector<ValueId> tuples;              ///< one after the other
  std::vector<TorchGlobal> globals;
  std::vector<TorchStorage> storages;
  std::vector<TorchTensor> tensors;
  std::vector<OpaqueObject> opaque;
  ValueId root = 0;
  bool has_parameters = false;  ///< a module's state_dict(), or torch.nn.Parameter

  ValueKind kind(ValueId id) const { return values[id].kind; }
  /// What a list, tuple or dict holds; nothing of any other value. Valid until a value is added.
  std::span<const ValueId> items(ValueId id) const;
};

/// Reads a pickle; the result points into it. A pickle whose structure cannot be followed is
/// refused: throws log::BadInput that begins with `place` ("m.pt: data.pkl"), names the opcode and
/// where it is, and ends with `advice`. Time and memory are bounded by the pickle's length.
PickleValues read_torch_pickle(std::span<const std::byte> pickle, const std::string& place,
                               const std::string& advice);

}  // namespace halfscope::analyzers::readers::tensors
