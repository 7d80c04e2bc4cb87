// SPDX-License-Identifier: Apache-2.0
// As many threads as a caller asks for.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace halfscope {

/// work() where parallel loops use `threads` threads; 0: as many as there are cores. oneTBB
/// complains on standard error of more threads than it may start.
template <class Work>
auto in_arena(int threads, const Work& work) {
  using Control = tbb::global_control;
  const auto allowed = static_cast<int>(Control::active_value(Control::max_allowed_parallelism));
  tbb::task_arena arena(threads <= 0 ? tbb::task_arena::automatic : std::min(threads, allowed));
  return arena.execute(work);
}

}  // namespace halfscope
