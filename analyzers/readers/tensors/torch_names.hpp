// SPDX-License-Identifier: Apache-2.0
// The classes and functions in a pickle of torch.save that are understood as data. They are
// recognised by name; nothing is ever imported or called.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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

}  // namespace halfscope::analyzers::readers::tensors
