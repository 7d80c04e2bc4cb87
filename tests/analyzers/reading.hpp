// SPDX-License-Identifier: Apache-2.0
// What a reader tells of a log, kept for tests.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/readers/kinds.hpp"
#include "temp_folder.hpp"

namespace halfscope::test {

/// Everything that reading a log told.
struct Told {
  std::vector<analyzers::Frame> frames;
  std::vector<analyzers::StepPeak> peaks;
  std::map<std::int64_t, log::StepScalars> scalars;
  std::vector<analyzers::LogKind> kinds;
  analyzers::Notes notes;

  const analyzers::Frame* frame(const std::string& name, std::int64_t step) const {
    for (const analyzers::Frame& f : frames) {
      if (f.name == name && f.step == step) return &f;
    }
    return nullptr;
  }
  const analyzers::StepPeak* peak(const std::string& tensor, std::int64_t step) const {
    for (const analyzers::StepPeak& p : peaks) {
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
  bool leaves_open(analyzers::Gap gap) const {
    for (const analyzers::LogKind& kind : kinds) {
      for (const analyzers::Gap g : kind.gaps) {
        if (g == gap) return true;
      }
    }
    return false;
  }
};

/// Reads a log as the analyzers do: by the kind its content shows.
inline Told told_of(const std::filesystem::path& log, const analyzers::Selection& selection = {}) {
  Told told;
  analyzers::Visitor visit;
  visit.frame = [&](analyzers::Frame&& frame) { told.frames.push_back(std::move(frame)); };
  visit.peak = [&](const analyzers::StepPeak& peak) { told.peaks.push_back(peak); };
  visit.scalars = [&](const log::StepScalars& s) { told.scalars[s.step] = s; };
  visit.kind = [&](const analyzers::LogKind& kind) { told.kinds.push_back(kind); };
  readers::for_each_frame(log, selection, visit, told.notes, {});
  return told;
}

}  // namespace halfscope::test
