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

/// Whether a sampled tensor of a run carries a scale that cannot be undone, as after a collapse.
bool scale_collapsed(const WholeStep& step, const Selection& selection, Role role) {
  if (step.run == nullptr || step.scalars == nullptr || selection.recorded_scale) return false;
  const std::optional<double> scale = step.scalars->loss_scale;
  return scale && !usable_scale(*scale) && step.says_scaled(role);
}

}  // namespace

void TensorsOfSteps::take(const WholeStep& step) {
  double done = 0;
  const double all = std::max(1.0, static_cast<double>(step.bytes));
  for (const std::string& name : step.tensors->names()) {
    WholeTensor whole;
    whole.role = step.role_of(selection_, name);
    if (!selects(selection_, name) || (step.rank > 0 && !step.is_sharded(whole.role))) continue;
    if (scale_collapsed(step, selection_, whole.role)) {
      left_out_ = std::min(left_out_.value_or(step.step), step.step);
      continue;
    }
    const auto tensor = step.tensors->tensor(name);
    whole.name = name;
    whole.step = step.step;
    whole.scale = step.scale_of(selection_, name);
    whole.shape = tensor->shape;
    whole.view = tensor->view;
    const auto bytes = static_cast<double>(whole.view.bytes());
    if (step.tell) whole.tell = [&](double part) { step.tell((done + part * bytes) / all); };
    visit_(whole);
    done += bytes;
    if (step.tell) step.tell(done / all);
  }
}

void TensorsOfSteps::finish(const std::filesystem::path& log, Notes& notes) const {
  if (!left_out_) return;
  note_once(notes, fmt::format("{}: sampled gradients are left out from step {} on: their loss "
                               "scale is no positive normal binary32 number",
                               log::printable(log.string()), *left_out_));
}

Tell within(const Progress& progress, std::uint64_t done, std::uint64_t step, std::uint64_t all) {
  if (!progress) return {};
  return [&progress, done, step, all](double part) {
    const auto more =
        static_cast<std::uint64_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(step));
    progress(std::min(done + more, all), all);
  };
}

void note_once(Notes& notes, Message note) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

}  // namespace halfscope::analyzers::frames
