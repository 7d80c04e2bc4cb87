// SPDX-License-Identifier: Apache-2.0
// Logs that tests of analyzers make: tensor files and run logs of given values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "halfscope/log/run_log.hpp"
#include "halfscope/log/safetensors.hpp"
#include "temp_folder.hpp"

namespace halfscope::test {

using Values = std::vector<float>;

inline TensorView view_of(const Values& values) {
  return {Dtype::f32, reinterpret_cast<const std::byte*>(values.data()), values.size()};
}

/// A safetensors file of binary32 tensors.
inline std::filesystem::path write_tensors(
    const TempFolder& folder, const std::vector<std::pair<std::string, Values>>& tensors) {
  std::vector<log::NamedTensor> named;
  for (const auto& [name, values] : tensors) {
    named.push_back({name, {values.size()}, view_of(values)});
  }
  const std::filesystem::path path = folder / "log.safetensors";
  log::write_safetensors(path, named);
  return path;
}

/// A record of binary32 values that carry `scale`.
inline log::TensorRecord record_of(const std::string& name, std::int64_t step, const Values& values,
                                   double scale = 1.0) {
  log::TensorRecord record;
  record.name = name;
  record.step = step;
  record.shape = {values.size()};
  record.state = scale == 1.0 ? log::ScaleState::unscaled : log::ScaleState::scaled;
  record.scale = scale;
  record.table = count_binades(view_of(values));
  return record;
}

}  // namespace halfscope::test
