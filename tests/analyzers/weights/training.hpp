// SPDX-License-Identifier: Apache-2.0
// Small trainings with PyTorch's update rules in binary32, written as run logs. Gradients are
// random numbers, rounded as autocast rounds them.
#pragma once

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "analyzers/logs.hpp"
#include "halfscope/number/convert.hpp"

namespace halfscope::test {

/// Rounds to nearest even.
inline float rounded_to(Format format, float x) {
  return static_cast<float>(to_double(format, from_double(format, x).bits));
}
inline void round_all(Values& values, Format format) {
  for (float& v : values) v = rounded_to(format, v);
}

/// One parameter and its state.
struct Parameter {
  enum class Start { normal, bf16, zero, one } start = Start::normal;
  std::string name;
  std::size_t rows = 40, columns = 50;
  double touched = 1;  ///< share of the rows that have a gradient at a step
  bool frozen = false;
  Values weight, gradient, momentum, first, second;
};

struct Training {
  std::string optimizer = "AdamW";
  double lr = 1e-3, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, decay = 0;
  std::optional<Format> gradients;  ///< format of the gradients; empty: binary32
  double loss_scale = 1;            ///< of gradients in binary16
  float gradient_size = 1e-2f;      ///< standard deviation
  double clip = 1;                  ///< gradients are multiplied by it before the step
  bool signs = false;               ///< gradients are powers of two
  bool tells_settings = true, samples_gradients = true;
  std::vector<std::int64_t> sampled = {0, 1, 2, 5};
  std::vector<Parameter> parameters;
  unsigned seed = 1;
  /// Called after each step: changes the parameters.
  std::function<void(std::int64_t step, std::vector<Parameter>&)> then;

  void write(const std::filesystem::path& folder) {
    std::mt19937 random(seed);
    log::Manifest manifest;
    if (tells_settings) {
      (*manifest.about)["optimizer"] = {{"class", "torch.optim." + optimizer},
                                        {"param_groups",
                                         {{{"lr", lr},
                                           {"momentum", momentum},
                                           {"betas", {beta1, beta2}},
                                           {"eps", 1e-8},
                                           {"weight_decay", decay}}}}};
    }
    log::RunLogWriter writer(folder, manifest);
    for (Parameter& p : parameters) begin(p, random);
    for (std::int64_t step = 0; step <= sampled.back(); ++step) {
      std::vector<std::pair<std::string, Values>> before;
      for (Parameter& p : parameters) before.emplace_back("weight/" + p.name, p.weight);
      for (Parameter& p : parameters) {
        if (!p.frozen) train(p, step, random);
      }
      if (then) then(step, parameters);
      if (std::ranges::find(sampled, step) != sampled.end()) sample(writer, step, before);
    }
  }

 private:
  static void begin(Parameter& p, std::mt19937& random) {
    std::normal_distribution<float> normal(0, 0.05f);
    p.weight.resize(p.rows * p.columns);
    for (float& w : p.weight) {
      w = p.start == Parameter::Start::one    ? 1
          : p.start == Parameter::Start::zero ? 0
                                              : normal(random);
      if (p.start == Parameter::Start::bf16) w = rounded_to(kBfloat16, w);
    }
    p.gradient = p.momentum = p.first = p.second = Values(p.weight.size(), 0);
  }

  float gradient_of(std::mt19937& random) const {
    float g = std::normal_distribution<float>(0, gradient_size)(random);
    if (signs) g = std::copysign(std::ldexp(1.f, -static_cast<int>(random() % 6)), g);
    if (gradients) {
      const auto s = static_cast<float>(loss_scale);
      g = rounded_to(*gradients, g * s) / s;
    }
    return g;
  }

  void train(Parameter& p, std::int64_t step, std::mt19937& random) const {
    for (std::size_t i = 0; i < p.weight.size(); ++i) {
      if (i % p.columns == 0) skip_ = static_cast<double>(random() % 1000) >= p.touched * 1000;
      p.gradient[i] = skip_ ? 0 : gradient_of(random) * static_cast<float>(clip);
      optimizer == "SGD" ? sgd(p, i, step) : adam(p, i, step);
    }
  }

  void sgd(Parameter& p, std::size_t i, std::int64_t step) const {
    float& w = p.weight[i];
    float g = p.gradient[i];
    if (decay != 0) g += static_cast<float>(decay) * w;
    float& buffer = p.momentum[i];
    buffer = step == 0 ? g : static_cast<float>(momentum) * buffer + g;
    w += static_cast<float>(-lr) * (momentum != 0 ? buffer : g);
  }

  void adam(Parameter& p, std::size_t i, std::int64_t step) const {
    const double t = static_cast<double>(step + 1);
    float &w = p.weight[i], &m = p.first[i], &v = p.second[i];
    float g = p.gradient[i];
    if (optimizer == "AdamW") w *= static_cast<float>(1 - lr * decay);
    if (optimizer == "Adam" && decay != 0) g += static_cast<float>(decay) * w;
    const auto part = static_cast<float>(1 - beta1);
    m = part < 0.5f ? std::fma(part, g - m, m) : g - (g - m) * (1 - part);
    v = std::fma(static_cast<float>(1 - beta2) * g, g, v * static_cast<float>(beta2));
    const auto root = static_cast<float>(std::sqrt(1 - std::pow(beta2, t)));
    const float d = std::sqrt(v) / root + 1e-8f;
    w += static_cast<float>(-lr / (1 - std::pow(beta1, t))) * m / d;
  }

  void sample(log::RunLogWriter& writer, std::int64_t step,
              std::vector<std::pair<std::string, Values>>& all) const {
    for (const Parameter& p : parameters) {
      if (p.frozen) continue;
      if (samples_gradients) all.emplace_back("weight_grad/" + p.name, p.gradient);
      if (optimizer == "SGD") {
        if (momentum != 0)
          all.emplace_back("optimizer_state/momentum_buffer/" + p.name, p.momentum);
        continue;
      }
      all.emplace_back("optimizer_state/exp_avg/" + p.name, p.first);
      all.emplace_back("optimizer_state/exp_avg_sq/" + p.name, p.second);
      all.emplace_back("optimizer_state/step/" + p.name, Values{static_cast<float>(step + 1)});
    }
    std::vector<log::NamedTensor> named;
    for (const auto& [name, values] : all)
      named.push_back({name, {values.size()}, view_of(values)});
    if (tells_settings) {
      log::StepScalars scalars;
      scalars.step = step;
      scalars.learning_rate = lr;
      writer.write(scalars);
    }
    writer.write_sample(step, named);
  }

  mutable bool skip_ = false;
};

}  // namespace halfscope::test
