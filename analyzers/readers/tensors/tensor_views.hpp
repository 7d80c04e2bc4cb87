// SPDX-License-Identifier: Apache-2.0
// Files of tensors seen otherwise than they are: under another name, or some of their tensors
// alone.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// A file whose one tensor has another name.
std::unique_ptr<log::TensorFile> renamed(std::unique_ptr<log::TensorFile> file, std::string name);

/// A file without the tensors that are not in `names`.
std::unique_ptr<log::TensorFile> chosen(std::unique_ptr<log::TensorFile> file,
                                        std::shared_ptr<const std::set<std::string>> names);

}  // namespace halfscope::analyzers::readers::tensors
