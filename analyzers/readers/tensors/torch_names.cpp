// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/torch_names.hpp"

#include <algorithm>
#include <iterator>

namespace halfscope::analyzers::readers::tensors {
namespace {

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

}  // namespace halfscope::analyzers::readers::tensors
