// SPDX-License-Identifier: Apache-2.0
// All tensors of a file at once, with their values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "halfscope/log/tensor_file.hpp"

namespace halfscope::test {

/// The readable tensors in the file's order; their values stay as long as this and the file.
class TensorsOf {
 public:
  explicit TensorsOf(const log::TensorFile& file) {
    for (const std::string& name : file.names()) {
      held_.push_back(file.tensor(name));
      all_.push_back(*held_.back());
    }
  }
  const std::vector<log::NamedTensor>& all() const { return all_; }

 private:
  std::vector<std::shared_ptr<const log::NamedTensor>> held_;
  std::vector<log::NamedTensor> all_;
};

}  // namespace halfscope::test
