// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace halfscope::cli::options {

/// A progress bar on stderr with the time left and, for bytes, the rate. It is shown after one
/// second, and only if stderr is a terminal. It can show several passes: it restarts when `all`
/// changes or `done` decreases.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Updates the bar. The numbers are bytes, or other units if `all` is below a million.
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
