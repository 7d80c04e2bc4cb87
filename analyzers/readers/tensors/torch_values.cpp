// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/torch_values.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace halfscope::analyzers::readers::tensors {
namespace {

/// Largest number of axes of a tensor, as in PyTorch.
constexpr std::size_t kMostAxes = 64;

/// PickleValue::number of a dict that is a record.
constexpr std::int64_t kRecord = 1;

constexpr std::string_view kOddTensor = "is a tensor that is described in an unknown way";

constexpr std::string_view kNoFloat = "is not a floating-point type";
constexpr std::string_view kNotCounted = "is not supported";
constexpr std::string_view kComplex = "is complex";
constexpr std::string_view kQuantized = "is quantized, and its scales are not read";

constexpr TorchType kTypes[] = {
    {"HalfStorage", "float16", 2, Dtype::f16},
    {"BFloat16Storage", "bfloat16", 2, Dtype::bf16},
    {"FloatStorage", "float32", 4, Dtype::f32},
    {"DoubleStorage", "float64", 8, Dtype::f64},
    {"", "float8_e4m3fn", 1, Dtype::f8_e4m3},
    {"", "float8_e5m2", 1, Dtype::f8_e5m2},
    {"", "float8_e4m3fnuz", 1, {}, kNotCounted},
    {"", "float8_e5m2fnuz", 1, {}, kNotCounted},
    {"", "float8_e8m0fnu", 1, {}, "holds scales, not values"},
    {"BoolStorage", "bool", 1, {}, kNoFloat},
    {"ByteStorage", "uint8", 1, {}, kNoFloat},
    {"CharStorage", "int8", 1, {}, kNoFloat},
    {"ShortStorage", "int16", 2, {}, kNoFloat},
    {"IntStorage", "int32", 4, {}, kNoFloat},
    {"LongStorage", "int64", 8, {}, kNoFloat},
    {"", "uint16", 2, {}, kNoFloat},
    {"", "uint32", 4, {}, kNoFloat},
    {"", "uint64", 8, {}, kNoFloat},
    {"", "complex32", 4, {}, kComplex},
    {"ComplexFloatStorage", "complex64", 8, {}, kComplex},
    {"ComplexDoubleStorage", "complex128", 16, {}, kComplex},
    {"QInt8Storage", "qint8", 1, {}, kQuantized},
    {"QUInt8Storage", "quint8", 1, {}, kQuantized},
    {"QInt32Storage", "qint32", 4, {}, kQuantized},
};

/// Module of the metadata of DCP checkpoints.
constexpr std::string_view kCheckpoint = "torch.distributed.checkpoint.metadata";

struct NameRow {
  std::string_view module, name;
  TorchName what;
};
constexpr NameRow kNames[] = {
    {"_codecs", "encode", TorchName::other},  // bytes, in protocol 2
    {"collections", "OrderedDict", TorchName::ordered_dict},
    {"torch", "Size", TorchName::size},
    {"torch", "Tensor", TorchName::tensor_class},
    {"torch", "device", TorchName::other},
    {"torch.nn.parameter", "Parameter", TorchName::tensor_class},
    {"torch._utils", "_rebuild_tensor", TorchName::tensor},
    {"torch._utils", "_rebuild_tensor_v2", TorchName::tensor_v2},
    {"torch._utils", "_rebuild_tensor_v3", TorchName::tensor_v3},
    {"torch._utils", "_rebuild_parameter", TorchName::parameter},
    {"torch._utils", "_rebuild_parameter_with_state", TorchName::parameter},
    {"torch._tensor", "_rebuild_from_type_v2", TorchName::from_type},
    {"torch.storage", "UntypedStorage", TorchName::storage},
    {"torch.storage", "_UntypedStorage", TorchName::storage},
    {"torch", "UntypedStorage", TorchName::storage},
    {kCheckpoint, "Metadata", TorchName::record},
    {kCheckpoint, "MetadataIndex", TorchName::record},
    {"megatron.core.dist_checkpointing.strategies.torch", "MCoreMetadata", TorchName::record},
    {"megatron.core.dist_checkpointing.mapping", "MCoreMetadata", TorchName::record},
    {kCheckpoint, "TensorStorageMetadata", TorchName::record},
    {kCheckpoint, "TensorProperties", TorchName::record},
    {kCheckpoint, "ChunkStorageMetadata", TorchName::record},
    {kCheckpoint, "BytesStorageMetadata", TorchName::record},
    {"torch.distributed.checkpoint.filesystem", "_StorageInfo", TorchName::record},
    {"torch.distributed._shard.sharded_tensor.metadata", "TensorProperties", TorchName::record},
};

const TorchType* find_type(std::string_view TorchType::*field, std::string_view name) {
  const auto* const row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                       [&](const TorchType& type) { return type.*field == name; });
  return row == std::end(kTypes) ? nullptr : row;
}

}  // namespace

std::optional<TorchGlobal> find_torch_global(std::string_view module, std::string_view name) {
  for (const NameRow& row : kNames) {
    if (row.module == module && row.name == name) return TorchGlobal{row.what};
  }
  if (name.empty() || (module != "torch" && module != "torch.cuda")) return std::nullopt;
  if (const TorchType* const type = find_type(&TorchType::storage, name)) {
    return TorchGlobal{TorchName::storage, type};
  }
  const TorchType* const type = find_type(&TorchType::dtype, name);
  return type == nullptr ? std::nullopt : std::optional(TorchGlobal{TorchName::dtype, type});
}

std::span<const ValueId> PickleValues::items(ValueId id) const {
  const PickleValue& value = values[id];
  switch (value.kind) {
    case ValueKind::tuple:
      return std::span(tuples).subspan(value.index, static_cast<std::size_t>(value.number));
    case ValueKind::list:
    case ValueKind::dict: return lists[value.index];
    default: return {};
  }
}

TorchValues::TorchValues() { result.values.emplace_back(); }

template <class Table, class Entry>
ValueId TorchValues::put(ValueKind kind, Table& table, Entry&& entry) {
  result.values.push_back({kind, static_cast<std::uint32_t>(table.size())});
  table.push_back(std::forward<Entry>(entry));
  return static_cast<ValueId>(result.values.size() - 1);
}

ValueId TorchValues::integer(std::int64_t number) {
  result.values.push_back({ValueKind::integer, 0, number});
  return static_cast<ValueId>(result.values.size() - 1);
}

ValueId TorchValues::text(std::string_view text) {
  return put(ValueKind::text, result.texts, text);
}

ValueId TorchValues::tuple(const std::vector<ValueId>& items) {
  result.values.push_back({ValueKind::tuple, static_cast<std::uint32_t>(result.tuples.size()),
                           static_cast<std::int64_t>(items.size())});
  result.tuples.insert(result.tuples.end(), items.begin(), items.end());
  return static_cast<ValueId>(result.values.size() - 1);
}

ValueId TorchValues::container(ValueKind kind, std::vector<ValueId>&& items) {
  return put(kind, result.lists, std::move(items));
}

void TorchValues::add(ValueId container, const std::vector<ValueId>& items) {
  std::vector<ValueId>& to = result.lists[result.values[container].index];
  to.insert(to.end(), items.begin(), items.end());
}

ValueId TorchValues::global(std::string_view module, std::string_view name) {
  const auto known = find_torch_global(module, name);
  return known ? put(ValueKind::global, result.globals, *known)
               : put(ValueKind::opaque, result.opaque, OpaqueObject{module, name});
}

ValueId TorchValues::opaque(std::string_view reason) {
  return put(ValueKind::opaque, result.opaque, OpaqueObject{{}, reason});
}

ValueId TorchValues::object_of(ValueId its_class) {
  if (is(its_class, ValueKind::opaque)) return its_class;
  const TorchGlobal* const known = global_at(its_class);
  if (known == nullptr || known->what != TorchName::record) return opaque("is a Python object");
  const ValueId record = container(ValueKind::dict, {});
  result.values[record].number = kRecord;
  return record;
}

const TorchGlobal* TorchValues::global_at(ValueId id) const {
  return is(id, ValueKind::global) ? &result.globals[result.values[id].index] : nullptr;
}

ValueId TorchValues::made_by(ValueId callee, ValueId arguments) {
  if (const TorchGlobal* const known = global_at(callee))
    return made_by(TorchGlobal(*known), arguments);
  return object_of(callee);
}

ValueId TorchValues::made_by(const TorchGlobal& function, ValueId arguments) {
  if (!is(arguments, ValueKind::tuple)) return opaque("is not made of a tuple");
  const Items items = result.items(arguments);
  switch (function.what) {
    case TorchName::ordered_dict: return ordered_dict(items);
    case TorchName::size:
      return items.size() == 1 && is(items[0], ValueKind::tuple) ? items[0] : plain();
    case TorchName::tensor:
    case TorchName::tensor_v2:
    case TorchName::tensor_v3: return tensor(items, function.what);
    case TorchName::parameter:
      result.has_parameters = true;
      return items.empty() ? opaque(kOddTensor) : items[0];
    case TorchName::from_type: return from_type(items);
    case TorchName::other: return plain();
    default: return opaque("is a Python object");
  }
}

void TorchValues::set_attributes(ValueId object, ValueId attributes) {
  if (is(object, ValueKind::dict) && result.values[object].number == kRecord) {
    // Shared, not copied: a short pickle may set the same attributes on many objects.
    const ValueId fields = is(attributes, ValueKind::tuple)
                               ? container(ValueKind::dict, {text(""), attributes})
                               : attributes;
    if (is(fields, ValueKind::dict)) result.values[object].index = result.values[fields].index;
    return;
  }
  if (!is(attributes, ValueKind::dict)) return;
  const Items items = result.items(attributes);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    // torch.nn.Module.state_dict() sets this attribute on its dictionary.
    if (is(items[i], ValueKind::text) && text_of(items[i]) == "_metadata") {
      result.has_parameters = true;
    }
  }
}

/// Makes a dict without items, or from a list of pairs, as Python 2 wrote it.
ValueId TorchValues::ordered_dict(Items arguments) {
  std::vector<ValueId> items;
  if (!arguments.empty()) {
    for (const ValueId pair : result.items(arguments[0])) {
      const Items both = result.items(pair);
      if (both.size() != 2) return opaque("is a dictionary that is described in an unknown way");
      items.insert(items.end(), both.begin(), both.end());
    }
  }
  return container(ValueKind::dict, std::move(items));
}

bool TorchValues::are_extents(ValueId tuple) const {
  const Items items = result.items(tuple);
  return is(tuple, ValueKind::tuple) && items.size() <= kMostAxes &&
         std::all_of(items.begin(), items.end(), [&](ValueId id) {
           return is(id, ValueKind::integer) && result.values[id].number >= 0;
         });
}

/// Returns true if argument `at` is a conjugation or negation not yet applied to the values.
bool TorchValues::has_metadata(Items arguments, std::size_t at) const {
  return arguments.size() > at && !result.items(arguments[at]).empty();
}

ValueId TorchValues::tensor(Items arguments, TorchName function) {
  const bool own_type = function == TorchName::tensor_v3;
  const std::size_t least = own_type ? 7 : 4;
  if (arguments.size() < least || !is(arguments[0], ValueKind::storage) ||
      !is(arguments[1], ValueKind::integer) || result.values[arguments[1]].number < 0 ||
      !are_extents(arguments[2]) || !are_extents(arguments[3]) ||
      result.items(arguments[2]).size() != result.items(arguments[3]).size()) {
    return opaque(kOddTensor);
  }
  TorchTensor tensor;
  tensor.storage = result.values[arguments[0]].index;
  tensor.type = result.storages[tensor.storage].type;
  if (own_type) {
    const TorchGlobal* const type = global_at(arguments[6]);
    tensor.type = type != nullptr && type->what == TorchName::dtype ? type->type : nullptr;
  }
  if (tensor.type == nullptr) return opaque("is a tensor of an unknown dtype");
  const bool real = tensor.type->counted.has_value();
  if (real && has_metadata(arguments, own_type ? 7 : 6)) {
    return opaque("is a view whose values are still to be negated; save a copy of it");
  }
  tensor.offset = static_cast<std::uint64_t>(result.values[arguments[1]].number);
  tensor.shape = arguments[2];
  tensor.strides = arguments[3];
  return put(ValueKind::tensor, result.tensors, tensor);
}

/// Makes a tensor and ignores its attributes. An object of a user's own class becomes opaque.
ValueId TorchValues::from_type(Items arguments) {
  if (arguments.size() < 3) return opaque(kOddTensor);
  const TorchGlobal* const function = global_at(arguments[0]);
  const TorchGlobal* const its_class = global_at(arguments[1]);
  if (its_class == nullptr) return object_of(arguments[1]);
  if (function == nullptr || its_class->what != TorchName::tensor_class ||
      function->what == TorchName::from_type) {  // PyTorch never nests it
    return opaque(kOddTensor);
  }
  return made_by(TorchGlobal(*function), arguments[2]);
}

ValueId TorchValues::persistent(ValueId id) {
  const Items items = result.items(id);
  const TorchGlobal* const type = items.size() < 5 ? nullptr : global_at(items[1]);
  if (type == nullptr || type->what != TorchName::storage || !is(items[0], ValueKind::text) ||
      text_of(items[0]) != "storage" || !is(items[2], ValueKind::text) ||
      !is(items[4], ValueKind::integer) || result.values[items[4]].number < 0) {
    return opaque("is kept outside of the file's pickle");
  }
  const TorchStorage storage{text_of(items[2]), type->type,
                             static_cast<std::uint64_t>(result.values[items[4]].number)};
  return put(ValueKind::storage, result.storages, storage);
}

}  // namespace halfscope::analyzers::readers::tensors
