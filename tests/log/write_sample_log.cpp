// SPDX-License-Identifier: Apache-2.0
// Writes a run log for tests in other languages, and what it holds as JSON to standard output:
//   write_sample_log FOLDER
// Numbers are hexadecimal floats, so that no decimal stands between writer and judge.
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <exception>
#include <random>

#include "halfscope/log/run_log.hpp"

namespace {

using namespace halfscope;
using nlohmann::json;

/// Values over many binades with both signs, and each special value.
std::vector<float> values(std::uint32_t seed, std::size_t count) {
  std::mt19937 random(seed);
  std::vector<float> made = {0.0f, -0.0f, 1.0f, -1.0f, 0x1p-149f, 0x1.fffffep127f};
  if (seed % 2 == 0) made.insert(made.end(), {INFINITY, -INFINITY, NAN});
  while (made.size() < count) {
    const float significand = 1.0f + static_cast<float>(random() % (1u << 23)) * 0x1p-23f;
    const int exponent = static_cast<int>(random() % 60) - 40;
    made.push_back(std::ldexp(random() % 3 == 0 ? -significand : significand, exponent));
  }
  return made;
}

std::string hexadecimal(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

void write_scalars(log::RunLogWriter& writer, std::int64_t step, json& said) {
  log::StepScalars scalars;
  scalars.step = step;
  scalars.loss = 1.0 / static_cast<double>(step + 3);
  scalars.learning_rate = 0.1;
  scalars.loss_scale = std::ldexp(1.0, 16);
  scalars.found_inf = step == 4;
  scalars.max_abs_weight_grad = 0x1.23456789abcdp-20;
  scalars.max_abs_activation_grad = step == 4 ? INFINITY : 0x1p-100;
  scalars.more["odd \"tag\"/<b>\xC3\xA9"] = -static_cast<double>(step);
  writer.write(scalars);
  const auto say = [&](const std::string& tag, double value) {
    said[tag].push_back({step, hexadecimal(value)});
  };
  say("loss", *scalars.loss);
  say("learning_rate", *scalars.learning_rate);
  say("loss_scale", *scalars.loss_scale);
  say("found_inf", *scalars.found_inf ? 1 : 0);
  say("max_abs/weight_grad", *scalars.max_abs_weight_grad);
  say("max_abs/activation_grad", *scalars.max_abs_activation_grad);
  for (const auto& [tag, value] : scalars.more) say(tag, value);
}

void write_tensors(log::RunLogWriter& writer, std::int64_t step, json& said) {
  std::vector<log::NamedTensor> sample;
  std::vector<std::vector<float>> data;
  const std::vector<std::string> names = {"weight_grad/conv1.weight", "update/<b> \xC3\xA9 / x"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    data.push_back(values(static_cast<std::uint32_t>(step) + static_cast<std::uint32_t>(i), 500));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TensorView view = {Dtype::f32, reinterpret_cast<const std::byte*>(data[i].data()),
                             data[i].size()};
    log::TensorRecord record;
    record.name = names[i];
    record.step = step;
    record.shape = {5, 100};
    record.state = log::ScaleState::scaled;
    record.scale = 65536;
    record.moments = moments(view);
    record.table = count_binades(view, 1);
    writer.write(record);
    said[record.name].push_back({step, record.table.encode()});
    sample.push_back({record.name, record.shape, view});
  }
  writer.write_sample(step, sample, {{"scale", "65536"}});
}

int run(const char* folder) {
  log::Manifest manifest;
  manifest.gradients = log::ScaleState::scaled;
  json said = {{"scalars", json::object()}, {"words", json::object()}};
  log::RunLogWriter writer(folder, manifest);
  for (std::int64_t step = 0; step < 12; ++step) {
    write_scalars(writer, step, said["scalars"]);
    if (step % 4 == 0) write_tensors(writer, step, said["words"]);
  }
  std::puts(said.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_sample_log FOLDER\n", stderr);
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_sample_log: %s\n", error.what());
    return 1;
  }
}
