// SPDX-License-Identifier: Apache-2.0
// Run logs with scalars of every step, for tests of replayed loss-scaling policies.
#pragma once

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "halfscope/log/run_log.hpp"
#include "halfscope/table/count/count.hpp"
#include "reports/sample.hpp"

namespace sample {

/// A run under PyTorch's loss scaling as it would have gone: gradients computed in FP16, unscaled
/// when recorded. `largest` tells a step's largest gradient; NaN: there is one in the model.
struct ScaledRun {
  std::int64_t steps = 0;
  std::int64_t table_every = 0;  ///< 0: none
  double initial = 65536;
  std::int64_t interval = 2000;
  std::function<double(std::int64_t)> largest;
  std::function<bool(std::int64_t)> missing = [](std::int64_t) { return false; };
};

inline halfscope::log::Manifest torch_manifest(const ScaledRun& run) {
  halfscope::log::Manifest out;
  (*out.about)["loss_scaling"] = {
      {"policy", "torch"}, {"init_scale", run.initial}, {"growth_interval", run.interval}};
  return out;
}

inline void write_tables(halfscope::log::RunLogWriter& writer, std::int64_t step, double largest) {
  const auto seed = static_cast<std::uint32_t>(step);
  std::vector<float> values = log_normal(300, std::log2(largest) - 22, 5, seed);
  for (float& x : values) x = static_cast<float>(std::fmin(std::fmax(x, -largest), largest));
  values[0] = static_cast<float>(largest);
  const halfscope::TensorView view{halfscope::Dtype::f32,
                                   reinterpret_cast<const std::byte*>(values.data()), 300};
  halfscope::log::TensorRecord record;
  record.name = "weight_grad/layer.weight";
  record.step = step;
  record.shape = {300};
  record.computed_dtype = halfscope::Dtype::f16;
  record.table = halfscope::count_binades(view, 1);
  record.moments = halfscope::moments(view);
  writer.write(record);
}

inline void scaled_run(const std::filesystem::path& folder, const ScaledRun& run) {
  halfscope::log::RunLogWriter writer(folder, torch_manifest(run));
  auto scale = static_cast<float>(run.initial);  // as PyTorch keeps it
  std::int64_t clean = 0;
  for (std::int64_t step = 0; step < run.steps; ++step) {
    const double largest = run.largest(step);
    const bool in_model = std::isnan(largest);
    const bool overflow = in_model || largest * static_cast<double>(scale) >= 65520;
    if (!run.missing(step)) {
      halfscope::log::StepScalars scalars;
      scalars.step = step;
      scalars.loss = in_model ? largest : 1.0;
      scalars.loss_scale = static_cast<double>(scale);
      scalars.found_inf = overflow;
      scalars.max_abs_weight_grad = largest;  // as FP32 gradients tell it
      writer.write(scalars);
      if (run.table_every != 0 && step % run.table_every == 0 && !overflow) {
        write_tables(writer, step, largest);
      }
    }
    clean = overflow ? 0 : clean + 1;
    if (overflow) scale /= 2;
    if (clean == run.interval) {
      scale *= 2;
      clean = 0;
    }
  }
}

/// Gradients that fit at 2^13 or below, with spikes: the scale is probed too often.
inline void restless_run(const std::filesystem::path& folder) {
  scaled_run(folder, {.steps = 400,
                      .table_every = 20,
                      .initial = 65536,
                      .interval = 8,
                      .largest = [](std::int64_t step) { return step % 97 == 50 ? 30.0 : 5.0; }});
}

/// NaN in the model from step 120 on: the scale halves for nothing.
inline void broken_run(const std::filesystem::path& folder) {
  scaled_run(folder, {.steps = 300,
                      .table_every = 10,
                      .initial = 1024,
                      .interval = 50,
                      .largest = [](std::int64_t step) {
                        return step < 120 ? 3.0 : std::numeric_limits<double>::quiet_NaN();
                      }});
}

/// Nothing ever overflows.
inline void calm_run(const std::filesystem::path& folder) {
  scaled_run(folder, {.steps = 200,
                      .table_every = 20,
                      .initial = 1024,
                      .interval = 2000,
                      .largest = [](std::int64_t) { return 0.25; }});
}

/// Steps 50 to 59 left nothing.
inline void gap_run(const std::filesystem::path& folder) {
  scaled_run(folder, {.steps = 200,
                      .table_every = 20,
                      .initial = 1024,
                      .interval = 2000,
                      .largest = [](std::int64_t) { return 0.25; },
                      .missing = [](std::int64_t step) { return step >= 50 && step < 60; }});
}

/// More steps than can be drawn one by one; the scale is probed every 100.
inline void long_run(const std::filesystem::path& folder, std::int64_t steps) {
  scaled_run(folder, {.steps = steps,
                      .table_every = steps / 1000,
                      .initial = 65536,
                      .interval = 100,
                      .largest = [](std::int64_t step) { return step % 1000 < 500 ? 1.5 : 5.0; }});
}

}  // namespace sample
