// SPDX-License-Identifier: Apache-2.0
// What must hold of a file of tensors that is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "halfscope/log/tensor_file.hpp"
#include "input.hpp"

namespace halfscope::fuzz {

struct Contents {
  std::size_t bytes = 0;
  std::uint64_t sum = 0;  ///< of all bytes
  bool operator==(const Contents&) const = default;
};

/// Touches every byte, so that the address sanitizer sees a view that leaves its tensor.
inline Contents contents_of(const log::TensorFile& file) {
  Contents contents;
  std::size_t tensors = 0;
  file.for_each([&](const log::NamedTensor& tensor) {
    require(log::element_count(tensor.shape) == tensor.view.count);
    for (std::size_t i = 0; i < tensor.view.bytes(); ++i) {
      contents.sum += std::to_integer<unsigned>(tensor.view.data[i]);
    }
    contents.bytes += tensor.view.bytes();
    ++tensors;
  });
  require(file.names().size() == tensors);
  return contents;
}

/// What is read by name is what is read in order.
inline void require_by_name(const log::TensorFile& file) {
  for (const std::string& name : file.names()) {
    const std::shared_ptr<const log::NamedTensor> one = file.tensor(name);
    require(one != nullptr && one->name == name);
    require(log::element_count(one->shape) == one->view.count);
    const std::optional<log::NamedTensor> outline = file.outline(name);
    require(outline && outline->name == name && outline->shape == one->shape);
    require(outline->view.data == nullptr && outline->view.count == one->view.count);
    require(outline->view.dtype == one->view.dtype);
  }
  require(file.tensor("no tensor has this name\n") == nullptr);
  require(!file.outline("no tensor has this name\n"));
}

}  // namespace halfscope::fuzz
