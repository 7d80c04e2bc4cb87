// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/kept_weights.hpp"

#include <algorithm>

namespace halfscope::analyzers::underflow {

std::string path_in(const std::string& name) {
  return log::role_in_name(name) ? name.substr(name.find('/') + 1) : name;
}

std::optional<Dtype> narrowest_dtype(const TensorFindings& tensor) {
  if (tensor.suspected_fp16) return Dtype::f16;
  if (!tensor.source_dtype || !tensor.computed_dtype) {
    return tensor.source_dtype ? tensor.source_dtype : tensor.computed_dtype;
  }
  const bool stored_wider =
      format_of(*tensor.source_dtype).precision > format_of(*tensor.computed_dtype).precision;
  return stored_wider ? tensor.computed_dtype : tensor.source_dtype;
}

std::optional<Dtype> kept_in(const LogFindings& log, const TensorFindings& weight) {
  const std::string path = path_in(weight.name);
  const auto master = std::ranges::find_if(log.tensors, [&](const TensorFindings& t) {
    return t.role == log::Role::master_weight && path_in(t.name) == path;
  });
  return narrowest_dtype(master == log.tensors.end() ? weight : *master);
}

std::optional<Dtype> kept_in_16_bits(const LogFindings& log, const TensorFindings& weight) {
  const std::optional<Dtype> kept = kept_in(log, weight);
  return kept && format_of(*kept).width == 16 ? kept : std::nullopt;
}

}  // namespace halfscope::analyzers::underflow
