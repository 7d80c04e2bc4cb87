// SPDX-License-Identifier: Apache-2.0
// Parallel loops on a given number of threads.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace halfscope {

/// Runs work() so that parallel loops in it use `threads` threads (0: one per core) and returns its
/// result. The number is limited to oneTBB's maximum, since it prints a warning for more.
template <class Work>
auto in_arena(int threads, const Work& work) {
  using Control = tbb::global_control;
  const auto allowed = static_cast<int>(Control::active_value(Control::max_allowed_parallelism));
  tbb::task_arena arena(threads <= 0 ? tbb::task_arena::automatic : std::min(threads, allowed));
  return arena.execute(work);
}

}  // namespace halfscope
