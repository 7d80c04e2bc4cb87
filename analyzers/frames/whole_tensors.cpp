// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/whole_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halfscope::analyzers::frames {

using log::Role;

bool WholeStep::is_sharded(Role role) const {
  return std::find(sharded.begin(), sharded.end(), role) != sharded.end();
}

bool WholeStep::says_scaled(Role role) const {
  if (!is_gradient(role)) return false;
  const char* const keys[] = {"activation_gradients", "gradients"};
  for (const char* key : keys) {
    if (role == Role::weight_grad && key == keys[0]) continue;
    const auto found = metadata.find(key);
    if (found != metadata.end()) {
      return log::find_scale_state(found->second) == log::ScaleState::scaled;
    }
  }
  return run->manifest().gradients == log::ScaleState::scaled;
}

namespace {

/// Returns true if a sampled tensor's scale cannot be undone, for example after its collapse to 0.
bool scale_collapsed(const WholeStep& step, const Selection& selection, Role role) {
  if (step.run == nullptr || step.scalars == nullptr || selection.recorded_scale) return false;
  const std::optional<double> scale = step.scalars->loss_scale;
  return scale && !usable_scale(*scale) && step.says_scaled(role);
}

}  // namespace

bool TensorsOfSteps::is_wanted(const WholeStep& step, const std::string& name) {
  const Role role = step.role_of(selection_, name);
  if (!selects(selection_, name) || (step.rank > 0 && !step.is_sharded(role))) return false;
  if (!scale_collapsed(step, selection_, role)) return true;
  left_out_ = std::min(left_out_.value_or(step.step), step.step);
  return false;
}

void TensorsOfSteps::visit(const WholeStep& step, const log::NamedTensor& tensor,
                           const ProgressCallback& tell) {
  const double before = static_cast<double>(done_);
  const double all = std::max(1.0, static_cast<double>(step.bytes));
  const auto bytes = static_cast<double>(tensor.view.bytes());
  WholeTensor whole;
  whole.name = tensor.name;
  whole.role = step.role_of(selection_, tensor.name);
  whole.step = step.step;
  whole.scale = step.scale_of(selection_, tensor.name);
  whole.shape = tensor.shape;
  whole.view = tensor.view;
  if (tell) whole.tell = [&](double part) { tell((before + part * bytes) / all); };
  visit_(whole);
  done_ += tensor.view.bytes();
  if (tell) tell((before + bytes) / all);
}

void TensorsOfSteps::take(const WholeStep& step, const log::NamedTensor& tensor,
                          const ProgressCallback& tell) {
  if (taken_.insert(tensor.name).second && is_wanted(step, tensor.name)) visit(step, tensor, tell);
}

void TensorsOfSteps::take(const WholeStep& step, const ProgressCallback& tell) {
  step.tensors->for_each_name([&](const std::string& name) {
    if (!taken_.contains(name) && is_wanted(step, name)) {
      visit(step, *step.tensors->tensor(name), tell);
    }
  });
  taken_.clear();
  done_ = 0;
}

void TensorsOfSteps::finish(const std::filesystem::path& log, Notes& notes) const {
  if (!left_out_) return;
  notes.add(
      fmt::format("{}: sampled gradients are skipped from step {} on: their loss "
                  "scale is not a positive normal binary32 number",
                  log::printable(log.string()), *left_out_));
}

ProgressCallback within(const Progress& progress, std::uint64_t done, std::uint64_t step,
                        std::uint64_t all) {
  if (!progress) return {};
  return [&progress, done, step, all](double part) {
    const auto more =
        static_cast<std::uint64_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(step));
    progress(std::min(done + more, all), all);
  };
}

}  // namespace halfscope::analyzers::frames
