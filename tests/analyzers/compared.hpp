// SPDX-License-Identifier: Apache-2.0
// Pairs of small runs, and their comparison.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "analyzers/logs.hpp"
#include "halfscope/number/convert.hpp"

namespace halfscope::test {

/// A run log: gradients of one tensor at some steps, with scalars.
struct Run {
  std::filesystem::path folder;
  log::RunLogWriter writer;
  explicit Run(const std::filesystem::path& path) : folder(path), writer(path, {}) {}

  void step(std::int64_t step, const Values& values, double loss_scale, double loss,
            std::optional<bool> found_inf = {}) {
    log::StepScalars scalars;
    scalars.step = step;
    scalars.loss = loss;
    scalars.loss_scale = loss_scale;
    scalars.found_inf = found_inf;
    writer.write(scalars);
    writer.write(record_of("weight_grad/w", step, values));
  }
};

inline analyzers::compare::Comparison compared(const std::filesystem::path& a,
                                               const std::filesystem::path& b,
                                               const analyzers::frames::Selection& selection = {}) {
  const analyzers::underflow::Analysis of_a = analyzers::underflow::analyze({a}, {}, selection),
                                       of_b = analyzers::underflow::analyze({b}, {}, selection);
  const analyzers::compare::Both<analyzers::frames::Selection> selections = {selection, selection};
  analyzers::compare::Comparison c = analyzers::compare::compare(of_a, of_b, selections);
  analyzers::compare::add_elements(c, of_a.logs.front(), of_b.logs.front(), selections);
  return c;
}

inline analyzers::frames::Selection own_scale() {
  analyzers::frames::Selection selection;
  selection.at_run_scale = true;
  return selection;
}

inline std::filesystem::path write_file(
    const TempFolder& folder, const std::string& name,
    const std::vector<std::pair<std::string, Values>>& tensors) {
  std::vector<log::NamedTensor> named;
  for (const auto& [its_name, values] : tensors) {
    named.push_back({its_name, {values.size()}, view_of(values)});
  }
  log::write_safetensors(folder / name, named);
  return folder / name;
}

/// FP16 as stored in binary32: x times scale, rounded, divided again.
inline Values through_fp16(const Values& values, double scale) {
  Values out;
  for (const float x : values) {
    const std::uint64_t bits = from_double(kBinary16, double{x} * scale).bits;
    out.push_back(static_cast<float>(to_double(kBinary16, bits) / scale));
  }
  return out;
}

inline const Values kValues = {1.0f,     -0x1p-20f, 0x1.8p-25f, 0x1p-25f, 0x1p-26f, 0.0f,
                               70000.0f, 0x1p-30f,  -0x1p-25f,  0.1f,     -0.0f,    0x1p-14f};

}  // namespace halfscope::test
