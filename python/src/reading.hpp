// SPDX-License-Identifier: Apache-2.0
// Common parts of calls that read logs: Ctrl-C ends them, and their notes are texts.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <string>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::python {

/// Returns a progress callback that lets Ctrl-C end a long call: it checks for signals at most
/// every 200 ms, and throws python_error.
inline analyzers::frames::Progress interruptible() {
  using Clock = std::chrono::steady_clock;
  return [last = Clock::now()](std::uint64_t, std::uint64_t) mutable {
    if (Clock::now() - last < std::chrono::milliseconds(200)) return;
    last = Clock::now();
    nanobind::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  };
}

inline std::vector<std::string> in_python(const analyzers::frames::Notes& notes) {
  std::vector<std::string> texts;
  for (const analyzers::frames::Message& note : notes) texts.push_back(note.in_python());
  return texts;
}

}  // namespace halfscope::python
