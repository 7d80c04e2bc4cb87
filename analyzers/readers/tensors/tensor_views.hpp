// SPDX-License-Identifier: Apache-2.0
// Wrappers of tensor files that rename their only tensor or hide some of their tensors.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Returns the file with its only tensor renamed.
std::unique_ptr<log::TensorFile> renamed(std::unique_ptr<log::TensorFile> file, std::string name);

/// Returns the file with only the tensors in `names`.
std::unique_ptr<log::TensorFile> chosen(std::unique_ptr<log::TensorFile> file,
                                        std::shared_ptr<const std::set<std::string>> names);

}  // namespace halfscope::analyzers::readers::tensors
