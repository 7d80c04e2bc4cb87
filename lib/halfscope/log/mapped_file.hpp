// SPDX-License-Identifier: Apache-2.0
// A whole file as read-only memory. Pages come from the page cache when they are touched, so a file
// larger than memory is no problem.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "halfscope/log/open_file.hpp"

namespace halfscope::log {

/// Maps a regular file. Throws BadInput when there is none or it cannot be read. A file that
/// another program cuts short while it is mapped ends this one (SIGBUS): logs are appended to or
/// replaced.
class MappedFile {
 public:
  /// by_need: of a file whose bytes arrive, those alone can be read that were asked for by need().
  explicit MappedFile(const OpenPath& path, bool by_need = false);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Throws BadInput where the bytes do not arrive.
  void need(std::size_t begin, std::size_t end) const;
  /// The bytes from `begin` up to `end` are not needed for now: the process no longer holds their
  /// pages. They can still be read, from the page cache.
  void leave(std::size_t begin, std::size_t end) const;
  /// The path as messages show it.
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const OpenFile> arriving_;  ///< null where all bytes are there
};

}  // namespace halfscope::log
