// SPDX-License-Identifier: Apache-2.0
// A run log made step by step, for tests of the overflow analyzer.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/logs.hpp"
#include "analyzers/overflow/overflow.hpp"

namespace halfscope::test {

/// A small run: activations "a", "b", "c" in that order, their gradients, weights of "b" and "c".
/// Values are given unscaled; gradients of an FP16 run are recorded at the step's loss scale.
class SmallRun {
 public:
  explicit SmallRun(std::optional<Dtype> computed = {}) : computed_(computed) {}

  void hold_loss_in(Dtype dtype) { manifest_.loss_dtype = dtype; }
  log::Manifest& manifest() { return manifest_; }

  log::StepScalars& scalars(std::int64_t step) {
    for (log::StepScalars& s : scalars_) {
      if (s.step == step) return s;
    }
    scalars_.emplace_back();
    scalars_.back().step = step;
    return scalars_.back();
  }

  void put(const std::string& name, std::int64_t step, const Values& values, double scale = 1.0) {
    records_.push_back(record_of(name, step, values, scale));
    records_.back().computed_dtype = computed_;
  }

  void put_wide(const std::string& name, std::int64_t step, const Values& values) {
    records_.push_back(record_of(name, step, values));
    records_.back().computed_dtype = Dtype::f32;
  }

  /// A step where nothing is wrong, recorded as the recorder does: gradients come backward.
  void put_step(std::int64_t step, double scale = 1.0, float gradient = 0.5f) {
    for (const char* name : {"weight/b.weight", "weight/c.weight"}) put(name, step, {0.25f});
    for (const char* name : {"activation/a", "activation/b", "activation/c"}) put(name, step, {2});
    const auto g = static_cast<float>(gradient * scale);
    for (const char* name : {"activation_grad/c", "weight_grad/c.weight", "activation_grad/b",
                             "weight_grad/b.weight", "activation_grad/a"}) {
      put(name, step, {g, g / 2}, scale);
    }
    log::StepScalars& s = scalars(step);
    s.loss = 2.5;
    s.loss_scale = scale;
  }

  /// Replaces a tensor's values at a step.
  void replace(const std::string& name, std::int64_t step, const Values& values,
               double scale = 1.0) {
    std::erase_if(records_, [&](const auto& r) { return r.name == name && r.step == step; });
    put(name, step, values, scale);
  }

  void write(const std::filesystem::path& folder) const {
    log::RunLogWriter writer(folder, manifest_);
    for (const log::StepScalars& s : scalars_) writer.write(s);
    for (const log::TensorRecord& record : records_) writer.write(record);
  }

  analyzers::underflow::Analysis analyze_at(double loss_scale = 1.0) const {
    const TempFolder folder;
    write(folder / "run");
    analyzers::frames::Selection selection;
    selection.loss_scale = loss_scale;
    return analyzers::underflow::analyze({folder / "run"}, {}, selection);
  }

  analyzers::overflow::OverflowFindings find(double loss_scale = 1.0) const {
    return analyzers::overflow::find_overflow(analyze_at(loss_scale));
  }

 private:
  std::optional<Dtype> computed_;
  log::Manifest manifest_;
  std::vector<log::StepScalars> scalars_;
  std::vector<log::TensorRecord> records_;
};

}  // namespace halfscope::test
