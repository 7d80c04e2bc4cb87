// SPDX-License-Identifier: Apache-2.0
// The names in a pickle of torch.save that stand for data. No other name means anything here, and
// none is ever imported or called.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::readers::tensors {

/// An element type of PyTorch: c10/core/ScalarType.h.
struct TorchType {
  std::string_view storage;  ///< its storage's class ("HalfStorage"); empty where it has none
  std::string_view dtype;    ///< "float16"
  unsigned width = 0;        ///< bytes of an element
  std::optional<Dtype> counted = {};
  std::string_view skip = {};  ///< why it is not counted, else
};

/// What a global name stands for.
enum class TorchName : std::uint8_t {
  ordered_dict,  ///< collections.OrderedDict(items)
  size,          ///< torch.Size((extents))
  storage,       ///< a storage's class: the type of its elements
  dtype,         ///< torch.bfloat16
  tensor_class,  ///< torch.Tensor, torch.nn.Parameter
  tensor,        ///< _rebuild_tensor(storage, offset, size, stride)
  tensor_v2,     ///< the same, requires_grad, hooks[, metadata]
  tensor_v3,     ///< the same, dtype[, metadata]; the storage is of bytes
  parameter,     ///< _rebuild_parameter(tensor, ...)
  from_type,     ///< _rebuild_from_type_v2(function, class, arguments, attributes)
  record,        ///< a class whose objects are their fields: a dictionary
  other          ///< makes what holds no tensors: torch.device
};

struct TorchGlobal {
  TorchName what = TorchName::other;
  const TorchType* type = nullptr;  ///< of a storage's class or a dtype; null: bytes
};

/// Empty for a name that is not known.
std::optional<TorchGlobal> find_torch_global(std::string_view module, std::string_view name);

}  // namespace halfscope::analyzers::readers::tensors
