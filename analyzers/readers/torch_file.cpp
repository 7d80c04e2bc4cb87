// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/torch_file.hpp"

#include <fmt/format.h>

#include "halfscope/log/error.hpp"

namespace halfscope::readers {

bool is_torch_member(std::string_view name) {
  return name == "data.pkl" || name.ends_with("/data.pkl");
}

std::unique_ptr<log::TensorFile> refuse_torch_file(const std::filesystem::path& path) {
  const std::string from = log::printable(path.string());
  const std::string to = log::printable(std::filesystem::path(path).replace_extension("").string());
  throw log::BadInput(fmt::format(
      "{}: is a file of torch.save, which holds pickled Python and is not read; want safetensors, "
      "NPY or NPZ; of a dictionary of tensors, convert it in Python with "
      "safetensors.torch.save_file(torch.load(\"{}\", weights_only=True), \"{}.safetensors\")",
      from, from, to));
}

}  // namespace halfscope::readers
