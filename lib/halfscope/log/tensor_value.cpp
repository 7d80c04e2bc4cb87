// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/tensor_value.hpp"

#include <bit>
#include <boost/endian/conversion.hpp>
#include <string>

#include "halfscope/number/convert.hpp"

namespace halfscope::log {
namespace {

/// Limit for repeated values: a large shape alone must not allocate memory.
constexpr std::size_t kMostRepeated = std::size_t{1} << 20;

const unsigned char* bytes_of(const std::string& content) {
  return reinterpret_cast<const unsigned char*>(content.data());
}

/// Converts an entry of half_val. TensorFlow stores the number's 16 bits, PyTorch's add_tensor its
/// 32 bits as binary32. Binary32 bits exceed 16 bits for every number but zero, since binary16's
/// subnormals are normal numbers in binary32.
double half_number(Format format, std::int32_t entry) {
  const auto bits = static_cast<std::uint32_t>(entry);
  return bits > 0xFFFF ? std::bit_cast<float>(bits) : to_double(format, bits);
}

std::optional<double> number_in(const proto::TensorProto& tensor) {
  switch (tensor.dtype()) {
    case proto::DT_FLOAT:
      if (tensor.float_val_size() == 1) return tensor.float_val(0);
      break;
    case proto::DT_DOUBLE:
      if (tensor.double_val_size() == 1) return tensor.double_val(0);
      break;
    case proto::DT_INT32:
      if (tensor.int_val_size() == 1) return tensor.int_val(0);
      break;
    case proto::DT_INT64:
      if (tensor.int64_val_size() == 1) return static_cast<double>(tensor.int64_val(0));
      break;
    case proto::DT_HALF:
      if (tensor.half_val_size() == 1) return half_number(kBinary16, tensor.half_val(0));
      break;
    case proto::DT_BFLOAT16:
      if (tensor.half_val_size() == 1) return half_number(kBfloat16, tensor.half_val(0));
      break;
    default: break;
  }
  return std::nullopt;
}

std::optional<double> number_in(proto::DataType dtype, const std::string& content) {
  using namespace boost::endian;
  const unsigned char* const bytes = bytes_of(content);
  if (content.size() == 8) {
    if (dtype == proto::DT_DOUBLE) return std::bit_cast<double>(load_little_u64(bytes));
    if (dtype == proto::DT_INT64) return static_cast<double>(load_little_s64(bytes));
  } else if (content.size() == 4) {
    if (dtype == proto::DT_FLOAT) return std::bit_cast<float>(load_little_u32(bytes));
    if (dtype == proto::DT_INT32) return load_little_s32(bytes);
  } else if (content.size() == 2) {
    if (dtype == proto::DT_HALF) return to_double(kBinary16, load_little_u16(bytes));
    if (dtype == proto::DT_BFLOAT16) return to_double(kBfloat16, load_little_u16(bytes));
  }
  return std::nullopt;
}

std::vector<double> numbers_in(const proto::TensorProto& tensor) {
  using namespace boost::endian;
  const bool wide = tensor.dtype() == proto::DT_DOUBLE;
  const std::string& content = tensor.tensor_content();
  if (content.empty()) {
    if (wide) return {tensor.double_val().begin(), tensor.double_val().end()};
    return {tensor.float_val().begin(), tensor.float_val().end()};
  }
  const std::size_t width = wide ? 8 : 4;
  std::vector<double> numbers(content.size() % width == 0 ? content.size() / width : 0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const unsigned char* const at = bytes_of(content) + i * width;
    numbers[i] = wide ? std::bit_cast<double>(load_little_u64(at))
                      : std::bit_cast<float>(load_little_u32(at));
  }
  return numbers;
}

}  // namespace

std::optional<double> number_of(const proto::TensorProto& tensor) {
  if (tensor.tensor_shape().dim_size() != 0) return std::nullopt;
  if (const auto number = number_in(tensor)) return number;
  return number_in(tensor.dtype(), tensor.tensor_content());
}

std::optional<std::vector<double>> rows_of(const proto::TensorProto& tensor, std::size_t columns) {
  const proto::TensorShape& shape = tensor.tensor_shape();
  if (tensor.dtype() != proto::DT_DOUBLE && tensor.dtype() != proto::DT_FLOAT) return std::nullopt;
  if (shape.dim_size() != 2 || shape.dim(1).size() != static_cast<std::int64_t>(columns)) {
    return std::nullopt;
  }
  std::vector<double> numbers = numbers_in(tensor);
  const auto rows = static_cast<std::uint64_t>(shape.dim(0).size());
  if (rows > std::max(numbers.size(), kMostRepeated) / columns) return std::nullopt;
  const auto wanted = static_cast<std::size_t>(rows) * columns;
  if (numbers.size() > wanted || (numbers.empty() && wanted != 0)) return std::nullopt;
  if (wanted != 0) numbers.resize(wanted, numbers.back());
  return numbers;
}

}  // namespace halfscope::log
