// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace halfscope::cli::options {

/// A bar on stderr with rate and time left. Shown from the second second on, and only where stderr
/// is a terminal. One bar serves several passes: it starts anew where the bytes do.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::uint64_t done_bytes, std::uint64_t all_bytes);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  Clock::time_point start_ = Clock::now(), phase_ = start_, shown_ = start_;
  std::uint64_t done_ = 0, all_ = 0;
  bool terminal_, visible_ = false;
};

}  // namespace halfscope::cli::options
