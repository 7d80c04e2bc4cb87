// SPDX-License-Identifier: Apache-2.0
// Long calls that Ctrl-C ends.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

#include "analyzers/frames/source.hpp"

namespace halfscope::python {

/// Lets Ctrl-C end a long call: looks for it a few times a second.
inline analyzers::frames::Progress interruptible() {
  using Clock = std::chrono::steady_clock;
  return [last = Clock::now()](std::uint64_t, std::uint64_t) mutable {
    if (Clock::now() - last < std::chrono::milliseconds(200)) return;
    last = Clock::now();
    nanobind::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  };
}

}  // namespace halfscope::python
