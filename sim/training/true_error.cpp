// SPDX-License-Identifier: Apache-2.0
#include "sim/training/true_error.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <optional>

#include <nlohmann/json.hpp>

#include "halfscope/log/error.hpp"
#include "halfscope/log/output_file.hpp"

namespace halfscope::sim::training {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

double number_of(const ordered_json& value) {
  return value.is_null() ? std::nan("") : value.get<double>();
}

ordered_json json_of(const GradientError& e) {
  return {{"role", log::name_of(e.role)},
          {"name", e.name},
          {"total", e.total},
          {"nonfinite", e.nonfinite},
          {"true_nonzero", e.true_nonzero},
          {"lost", e.lost},
          {"underflowed", e.underflowed},
          {"spurious", e.spurious},
          {"sign_changed", e.sign_changed},
          {"true_norm", number(e.true_norm)},
          {"run_norm", number(e.run_norm)},
          {"error_norm", number(e.error_norm)},
          {"lost_norm", number(e.lost_norm)},
          {"underflowed_norm", number(e.underflowed_norm)},
          {"dot", number(e.dot)},
          {"relative_error", number(e.relative_error())},
          {"cosine", number(e.cosine())}};
}

GradientError error_of(const ordered_json& told) {
  GradientError e;
  const auto role = log::find_role(told.at("role").get<std::string>());
  if (!role) throw ordered_json::other_error::create(500, "'role' is none", &told);
  e.role = *role;
  e.name = told.at("name").get<std::string>();
  for (const auto& [key, count] :
       {std::pair{"total", &e.total}, std::pair{"nonfinite", &e.nonfinite},
        std::pair{"true_nonzero", &e.true_nonzero}, std::pair{"lost", &e.lost},
        std::pair{"underflowed", &e.underflowed}, std::pair{"spurious", &e.spurious},
        std::pair{"sign_changed", &e.sign_changed}}) {
    *count = told.at(key).get<std::uint64_t>();
  }
  for (const auto& [key, value] :
       {std::pair{"true_norm", &e.true_norm}, std::pair{"run_norm", &e.run_norm},
        std::pair{"error_norm", &e.error_norm}, std::pair{"lost_norm", &e.lost_norm},
        std::pair{"underflowed_norm", &e.underflowed_norm}, std::pair{"dot", &e.dot}}) {
    *value = number_of(told.at(key));
  }
  return e;
}

StepError step_of(const std::string& line) {
  const auto told = ordered_json::parse(line);
  StepError step;
  step.step = told.at("step").get<std::int64_t>();
  step.loss = number_of(told.at("loss"));
  step.true_loss = number_of(told.at("true_loss"));
  for (const auto& tensor : told.at("tensors")) step.tensors.push_back(error_of(tensor));
  return step;
}

std::string line_of(const StepError& step) {
  ordered_json told = {{"step", step.step},
                       {"loss", number(step.loss)},
                       {"true_loss", number(step.true_loss)},
                       {"tensors", ordered_json::array()}};
  for (const GradientError& tensor : step.tensors) told["tensors"].push_back(json_of(tensor));
  return told.dump() + '\n';
}

}  // namespace

TrueErrorFile::TrueErrorFile(const fs::path& run, std::int64_t from_step)
    : path_(run / kTrueErrorFile) {
  std::string kept;
  for (const StepError& step : read_true_errors(run)) {
    if (step.step < from_step) kept += line_of(step);
  }
  log::OutputFile file(path_);  // replaces the file atomically: an interruption loses nothing
  file.write(kept);
  file.commit();
}

void TrueErrorFile::write(const StepError& error) const {
  std::ofstream out(path_, std::ios::app | std::ios::binary);
  out << line_of(error);
  out.close();
  if (out) return;
  throw log::BadInput(
      fmt::format("{}: cannot be written; is the disk full?", log::printable(path_.string())));
}

std::vector<StepError> read_true_errors(const fs::path& run) {
  std::vector<StepError> steps;
  std::ifstream in(run / kTrueErrorFile, std::ios::binary);
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (in.eof()) break;  // the line is incomplete: it has no newline
    try {
      steps.push_back(step_of(line));
    } catch (const ordered_json::exception& error) {
      throw log::BadInput(fmt::format(
          "{}, line {}: is not one of `halfscope simulate --true-error` ({}); delete the file, or "
          "repeat the run",
          log::printable((run / kTrueErrorFile).string()), number, error.what()));
    }
  }
  return steps;
}

}  // namespace halfscope::sim::training
