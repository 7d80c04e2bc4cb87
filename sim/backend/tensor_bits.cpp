// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/tensor_bits.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

#include "halfscope/array/array.hpp"

namespace halfscope::sim::backend {
namespace {

bool is_half(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16; }

void require_known(Dtype dtype) {
  if (is_half(dtype) || dtype == Dtype::f32) return;
  throw std::invalid_argument("tensors of a run are F16, BF16 or F32, not " +
                              std::string(name_of(dtype)));
}

}  // namespace

log::NamedTensor TensorBits::named(const std::string& name) const {
  log::NamedTensor tensor;
  tensor.name = name;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.view = {dtype, bytes.data(), static_cast<std::size_t>(elements(shape))};
  return tensor;
}

TensorBits bits_of(Backend& backend, const Tensor& tensor) {
  require_known(tensor.dtype);
  const std::vector<float> values = backend.get(tensor);
  TensorBits bits{tensor.shape, tensor.dtype, {}};
  if (!is_half(tensor.dtype)) {
    const auto bytes = std::as_bytes(std::span(values));
    bits.bytes.assign(bytes.begin(), bytes.end());
    return bits;
  }
  std::vector<std::uint16_t> words(values.size());
  convert(format_of(tensor.dtype), values, words);  // exact: all are values of the dtype
  const auto bytes = std::as_bytes(std::span(words));
  bits.bytes.assign(bytes.begin(), bytes.end());
  return bits;
}

void set_bits(Backend& backend, const TensorView& from, Tensor& to) {
  require_known(from.dtype);
  if (from.dtype != to.dtype || from.count != static_cast<std::size_t>(to.size())) {
    throw std::invalid_argument("set_bits: the file's tensor is of another dtype or size");
  }
  std::vector<float> values(from.count);
  if (is_half(from.dtype)) {
    std::vector<std::uint16_t> words(from.count);
    std::memcpy(words.data(), from.data, from.bytes());
    convert(format_of(from.dtype), words, values);
  } else if (from.count != 0) {
    std::memcpy(values.data(), from.data, from.bytes());
  }
  backend.set(to, values);
}

Shape torch_shape(const Shape& shape) {
  if (shape.size() != 4) return shape;
  return {shape[0], shape[3], shape[1], shape[2]};
}

TensorBits torch_layout(TensorBits tensor) {
  if (tensor.shape.size() != 4) return tensor;
  const auto width = static_cast<std::size_t>(format_of(tensor.dtype).width / 8);
  const auto k = static_cast<std::size_t>(tensor.shape[0]);
  const auto window = static_cast<std::size_t>(tensor.shape[1] * tensor.shape[2]);
  const auto channels = static_cast<std::size_t>(tensor.shape[3]);
  std::vector<std::byte> moved(tensor.bytes.size());
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t at = 0; at < window; ++at) {
      for (std::size_t c = 0; c < channels; ++c) {
        const std::size_t from = (i * window + at) * channels + c;
        const std::size_t to = (i * channels + c) * window + at;
        std::memcpy(&moved[to * width], &tensor.bytes[from * width], width);
      }
    }
  }
  tensor.shape = torch_shape(tensor.shape);
  tensor.bytes = std::move(moved);
  return tensor;
}

}  // namespace halfscope::sim::backend
