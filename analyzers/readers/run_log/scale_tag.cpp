// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/run_log/scale_tag.hpp"

#include <fmt/format.h>

#include <set>

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::run_log {

ScaleTag::ScaleTag(const log::RunLog& log, const frames::Selection& selection) {
  if (!selection.scale_tag) return;
  constexpr const char* kLossScale = "loss_scale";  // docs/run-log.md
  scales_.emplace();
  std::set<std::string> tags;
  for (const log::StepScalars& scalars : log.scalars()) {
    std::map<std::string, double> all = scalars.more.map();
    if (scalars.loss_scale) all[kLossScale] = *scalars.loss_scale;
    for (const auto& [tag, value] : all) {
      tags.insert(tag);
      if (tag == *selection.scale_tag) (*scales_)[scalars.step] = value;
    }
  }
  if (!scales_->empty()) return;
  constexpr std::size_t kMostNames = 12;
  std::string list;
  std::size_t named = 0;
  for (const std::string& tag : tags) {
    if (named++ == kMostNames) break;
    list += (list.empty() ? "it has '" : ", '") + log::printable(tag) + "'";
  }
  if (tags.size() > kMostNames) list += fmt::format(" and {} more", tags.size() - kMostNames);
  common::refuse_scale_tag(
      log.folder().string(), *selection.scale_tag,
      list.empty() ? "it has none that may be a loss scale: give a number" : list);
}

void ScaleTag::set(log::TensorRecord& record) const {
  if (!scales_ || record.state == log::ScaleState::unscaled) return;
  const auto of_step = scales_->find(record.step);
  record.scale_known = of_step != scales_->end();
  if (record.scale_known) record.scale = of_step->second;
}

}  // namespace halfscope::analyzers::readers::run_log
