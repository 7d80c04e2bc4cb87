// SPDX-License-Identifier: Apache-2.0
// Protection of mapped files that another program truncates: access to a lost page raises SIGBUS.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace halfscope::log {

/// Installs a SIGBUS handler, after which files may be mapped: if a mapped file is truncated, the
/// process prints one line with the file's name and exits with 1. Programs call it once at their
/// start. Without it, as in Python, files are read instead of mapped.
void end_where_maps_are_cut();

/// Registers a mapped file with the handler. The destructor unregisters it.
class WatchedMap {
 public:
  WatchedMap() = default;
  ~WatchedMap();
  WatchedMap(const WatchedMap&) = delete;
  WatchedMap& operator=(const WatchedMap&) = delete;

  /// Reserves a handler entry for a file, before it is mapped. Returns false if the file must not
  /// be mapped: no handler is installed, or 1,024 files are already mapped.
  bool reserve(const std::string& name);
  /// Sets the mapped bytes of the file that reserve() named.
  void watch(std::span<const std::byte> bytes);

 private:
  std::size_t place_ = 0;  ///< index of the handler entry, from 1; 0: none
};

}  // namespace halfscope::log
