// SPDX-License-Identifier: Apache-2.0
// Memory of the process as a log: readers open it as a file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::input {

/// A path that stands for a file in memory while this object lives. Other files at that path cannot
/// be opened meanwhile.
class MemoryInput {
 public:
  /// pieces: see log::OpenFile. At most one object may have a path at a time.
  MemoryInput(std::filesystem::path path, const std::vector<std::span<const std::byte>>& pieces);
  ~MemoryInput();
  MemoryInput(const MemoryInput&) = delete;
  MemoryInput& operator=(const MemoryInput&) = delete;

 private:
  std::filesystem::path path_;
};

/// Returns the file in memory for which a path stands; null if it is no such path. Thread-safe.
std::shared_ptr<log::OpenFile> memory_input(const std::filesystem::path& path);

}  // namespace halfscope::analyzers::readers::input
