// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace halfscope::cli::options {

/// A bar on stderr with time left, and the rate where it is of bytes. Shown from the second second
/// on, and only where stderr is a terminal. One bar serves several passes: it starts anew where the
/// bytes do.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Bytes, or less than a million of something else.
  void show(std::uint64_t done, std::uint64_t all);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  Clock::time_point start_ = Clock::now(), phase_ = start_, shown_ = start_;
  std::uint64_t done_ = 0, all_ = 0;
  bool terminal_, visible_ = false;
};

}  // namespace halfscope::cli::options
