// SPDX-License-Identifier: Apache-2.0
// Run logs as small training runs leave them, for tests of pages.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "halfscope/log/run_log.hpp"
#include "halfscope/table/count/count.hpp"

namespace sample {

/// Writes tensors of one role at a step.
class Log {
 public:
  /// scale: the loss scale recorded values carry.
  explicit Log(const std::filesystem::path& folder, double scale = 1.0)
      : writer_(folder, manifest(scale)), scale_(scale) {}

  void write(const std::string& name, std::int64_t step, const std::vector<float>& values) {
    const halfscope::TensorView view{
        halfscope::Dtype::f32, reinterpret_cast<const std::byte*>(values.data()), values.size()};
    halfscope::log::TensorRecord record;
    record.name = name;
    record.step = step;
    record.shape = {values.size()};
    record.scale = scale_;
    if (scale_ != 1) record.state = halfscope::log::ScaleState::scaled;
    record.table = halfscope::count_binades(view, 1);
    record.moments = halfscope::moments(view);
    writer_.write(record);
  }

 private:
  static halfscope::log::Manifest manifest(double scale) {
    halfscope::log::Manifest out;
    if (scale != 1) out.gradients = halfscope::log::ScaleState::scaled;
    return out;
  }

  halfscope::log::RunLogWriter writer_;
  double scale_;
};

/// Magnitudes 2^x, x normal: what gradients look like. Deterministic.
inline std::vector<float> log_normal(std::size_t count, double centre, double sd,
                                     std::uint32_t seed) {
  std::mt19937 bits(seed);
  const auto uniform = [&] { return (static_cast<double>(bits()) + 0.5) / 4294967296.0; };
  std::vector<float> out(count);
  for (float& x : out) {
    const double turn = 6.283185307179586 * uniform();
    const double normal = std::sqrt(-2 * std::log(uniform())) * std::cos(turn);
    x = static_cast<float>(std::exp2(centre + sd * normal) * ((bits() & 1) != 0 ? 1 : -1));
  }
  return out;
}

/// Eight layers, five roles, ten steps; gradients shrink as training goes on.
inline void training_run(const std::filesystem::path& folder) {
  Log log(folder);
  const std::int64_t steps[] = {0, 1, 2, 5, 10, 20, 50, 100, 200, 400};
  for (int layer = 0; layer < 8; ++layer) {
    const std::string path = "layer" + std::to_string(layer) + ".conv.weight";
    const std::size_t count = 400U * static_cast<std::size_t>(layer + 1);
    for (int i = 0; i < 10; ++i) {
      const auto seed = static_cast<std::uint32_t>(100 * layer + i);
      const double depth = -12 - 2.3 * (7 - layer), age = -0.5 * i;
      log.write("weight_grad/" + path, steps[i],
                log_normal(count, depth + age, 3 + 0.4 * layer, seed));
      std::vector<float> sparse = log_normal(count, depth - 1 + age, 4, seed + 5000);
      for (std::size_t j = 0; j < count; j += 3) sparse[j] = 0;  // a dead ReLU: true zeros
      log.write("activation_grad/layer" + std::to_string(layer), steps[i], sparse);
      log.write("activation/layer" + std::to_string(layer), steps[i],
                log_normal(count, -1, 2, seed + 10000));
      log.write("weight/" + path, steps[i], log_normal(count, -5, 1.5, seed + 15000));
      log.write("update/" + path, steps[i],
                log_normal(count, depth + age - 7, 3 + 0.4 * layer, seed + 20000));
    }
  }
}

/// One tensor, one step, a name that is markup and an escape sequence.
inline void hostile_run(const std::filesystem::path& folder) {
  Log log(folder);
  log.write("weight_grad/<script>alert(1)</script>", 0, log_normal(300, -20, 4, 1));
  log.write("weight_grad/</script><img src=x onerror=alert(2)>", 0, log_normal(300, -22, 4, 2));
  log.write("weight_grad/\x1b[31mred\xe2\x80\xae", 0, log_normal(300, -21, 4, 3));
}

/// All zero, all NaN, infinities among finite values, one value.
inline void odd_run(const std::filesystem::path& folder) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Log log(folder);
  log.write("weight_grad/zero", 3, std::vector<float>(64, 0.0F));
  log.write("weight_grad/nan", 3, std::vector<float>(64, std::nanf("")));
  log.write("weight_grad/inf", 3, {kInf, -kInf, 1.0F, 0x1p-26F});
  log.write("weight_grad/one", 3, {0x1.8p-30F});
}

inline void no_gradients_run(const std::filesystem::path& folder) {
  Log(folder).write("weight/only", 0, log_normal(500, -4, 2, 9));
}

inline void all_zero_run(const std::filesystem::path& folder) {
  Log(folder).write("weight_grad/zero", 0, std::vector<float>(64, 0.0F));
}

/// A recorded scale that is no power of two: counts are bounds.
inline void scaled_by_1000_run(const std::filesystem::path& folder) {
  Log log(folder, 1000.0);
  for (std::int64_t step = 0; step < 3; ++step) {
    log.write("weight_grad/a", step, log_normal(400, -12, 4, static_cast<std::uint32_t>(step)));
  }
}

inline void large_run(const std::filesystem::path& folder, int tensors) {
  Log log(folder);
  for (int i = 0; i < tensors; ++i) {
    const std::string name = "weight_grad/block" + std::to_string(i / 10) + ".linear" +
                             std::to_string(i % 10) + ".weight";
    for (std::int64_t step = 0; step < 10; ++step) {
      log.write(name, step, log_normal(200, -14 - i % 17, 4, static_cast<std::uint32_t>(i)));
    }
  }
}

}  // namespace sample
