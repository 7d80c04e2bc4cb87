// SPDX-License-Identifier: Apache-2.0
// Mapped files that another program cuts short: touching a byte that is gone raises SIGBUS.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace halfscope::log {

/// Files may be mapped from now on: where one of them is cut short, the process prints one line
/// with the file's name and exits with 1. For programs, which call it once at their start: it
/// installs a handler of SIGBUS. Where nobody calls it, as in Python, files are read instead.
void end_where_maps_are_cut();

/// Registers a mapped file with the handler. The destructor removes it.
class WatchedMap {
 public:
  WatchedMap() = default;
  ~WatchedMap();
  WatchedMap(const WatchedMap&) = delete;
  WatchedMap& operator=(const WatchedMap&) = delete;

  /// Reserves a place for a file that will be mapped. Returns false where it must not be: no
  /// handler is installed, or 1,024 files are mapped.
  bool reserve(const std::string& name);
  /// The file's bytes, after reserve().
  void watch(std::span<const std::byte> bytes);

 private:
  std::size_t place_ = 0;  ///< from 1; 0: none
};

}  // namespace halfscope::log
