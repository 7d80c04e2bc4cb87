// SPDX-License-Identifier: Apache-2.0
#include "cli/options/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace halfscope::cli::options {

Progress::Progress(std::string what)
    : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(std::uint64_t done_bytes, std::uint64_t all_bytes) {
  using std::chrono::duration;
  const Clock::time_point now = Clock::now();
  // Another file, or another pass; the first began with the bar.
  if (all_ != 0 && (all_bytes != all_ || done_bytes < done_)) phase_ = now;
  all_ = all_bytes;
  done_ = done_bytes;
  const bool early = duration<double>(now - start_).count() < 1;
  if (!terminal_ || early || duration<double>(now - shown_).count() < 0.1) return;
  shown_ = now;
  visible_ = true;
  constexpr int kWidth = 30;
  const double seconds = std::max(1e-3, duration<double>(now - phase_).count());
  const double done = static_cast<double>(done_bytes), all = static_cast<double>(all_bytes);
  const double part = all > 0 ? std::min(1.0, done / all) : 0;
  const int filled = static_cast<int>(part * kWidth);
  const double left = part > 0 ? seconds / part - seconds : 0;
  const double rate = done / seconds;
  fmt::print(stderr, "\r\x1b[K{} [{:=<{}}{: <{}}] {:3.0f} %  {:.{}f} {}/s  {:.0f} s left", what_,
             "", filled, "", kWidth - filled, 100 * part, rate < 1e9 ? rate / 1e6 : rate / 1e9,
             rate < 1e9 ? 0 : 2, rate < 1e9 ? "MB" : "GB", left);
  std::fflush(stderr);
}

void Progress::clear() {
  if (visible_) fmt::print(stderr, "\r\x1b[K");
  visible_ = false;
}

}  // namespace halfscope::cli::options
