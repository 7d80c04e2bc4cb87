// SPDX-License-Identifier: Apache-2.0
// What a reader tells of a log, kept for tests.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/frames/quantised.hpp"
#include "analyzers/readers/kinds.hpp"
#include "temp_folder.hpp"

namespace halfscope::test {

/// A QuantisedSeries that outlives its telling.
struct ToldSeries {
  std::string layer, tensor;
  log::Role role;
  analyzers::frames::Recipe recipe;
  bool columnwise;
  analyzers::frames::QuantisedStatistic statistic;
  std::vector<analyzers::frames::QuantisedValue> values;
  std::vector<std::int64_t> log_steps;
};

/// Everything that reading a log told.
struct Told {
  std::vector<analyzers::frames::Frame> frames;
  std::vector<analyzers::frames::StepPeak> peaks;
  std::map<std::int64_t, log::StepScalars> scalars;
  std::vector<analyzers::frames::SkippedSteps> skips;
  std::vector<analyzers::frames::LogKind> kinds;
  std::vector<ToldSeries> quantised;
  analyzers::frames::Notes notes;

  const analyzers::frames::Frame* frame(const std::string& name, std::int64_t step) const {
    for (const analyzers::frames::Frame& f : frames) {
      if (f.name == name && f.step == step) return &f;
    }
    return nullptr;
  }
  const analyzers::frames::StepPeak* peak(const std::string& tensor, std::int64_t step) const {
    for (const analyzers::frames::StepPeak& p : peaks) {
      if (p.tensor == tensor && p.step == step) return &p;
    }
    return nullptr;
  }
  /// Whether some note has this text.
  bool noted(const std::string& text) const {
    for (const std::string& note : notes) {
      if (note.find(text) != std::string::npos) return true;
    }
    return false;
  }
  bool leaves_open(analyzers::frames::Gap gap) const {
    for (const analyzers::frames::LogKind& kind : kinds) {
      for (const analyzers::frames::Gap g : kind.gaps) {
        if (g == gap) return true;
      }
    }
    return false;
  }
};

/// Reads a log as the analyzers do: by the kind its content shows.
inline Told told_of(const std::filesystem::path& log,
                    const analyzers::frames::Selection& selection = {}) {
  Told told;
  analyzers::frames::Visitor visit;
  visit.frame = [&](analyzers::frames::Frame&& frame) { told.frames.push_back(std::move(frame)); };
  visit.peak = [&](const analyzers::frames::StepPeak& peak) { told.peaks.push_back(peak); };
  visit.scalars = [&](const log::StepScalars& s) { told.scalars[s.step] = s; };
  visit.skipped = [&](const analyzers::frames::SkippedSteps& s) { told.skips.push_back(s); };
  visit.kind = [&](const analyzers::frames::LogKind& kind) { told.kinds.push_back(kind); };
  visit.quantised = [&](const analyzers::frames::QuantisedSeries& s) {
    told.quantised.push_back({std::string(s.layer),
                              std::string(s.tensor),
                              s.role,
                              s.recipe,
                              s.columnwise,
                              s.statistic,
                              {s.values.begin(), s.values.end()},
                              {s.log_steps.begin(), s.log_steps.end()}});
  };
  analyzers::readers::for_each_frame(log, selection, visit, told.notes, {});
  return told;
}

}  // namespace halfscope::test
