// SPDX-License-Identifier: Apache-2.0
// A file of tensors as read-only memory. A program maps it: pages come from the page cache when
// they are touched, so that a file larger than memory is no problem. Where no handler of SIGBUS is
// installed (cut_maps.hpp), as in Python, the bytes that are asked for are read instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "halfscope/log/cut_maps.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::log {

/// Bytes that stay as long as `owner` and the object that gave them.
struct FileBytes {
  std::shared_ptr<const std::byte[]> owner;  ///< null where they are mapped
  std::span<const std::byte> bytes;
};

/// A regular file. The constructor throws BadInput when there is none or it cannot be read.
class MappedFile {
 public:
  /// by_need: of a file whose bytes arrive, range() asks for those alone that it gives.
  explicit MappedFile(const OpenPath& path, bool by_need = false);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// Bytes of the file when it was opened.
  std::uint64_t size() const { return size_; }
  /// The bytes from `begin` up to `end`, which lie in the file. Throws BadInput where they do not
  /// arrive, or are read and the file was cut short.
  FileBytes range(std::uint64_t begin, std::uint64_t end) const;
  /// The same, copied; returns whether all were there.
  bool copy(std::uint64_t begin, std::span<std::byte> to) const;
  /// Throws BadInput where the file is shorter now than when it was opened.
  void check_size() const;
  /// The bytes from `begin` up to `end` are not needed for now: the process no longer holds their
  /// pages. They can still be read, from the page cache.
  void leave(std::uint64_t begin, std::uint64_t end) const;
  /// The path as messages show it.
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::shared_ptr<const OpenFile> file_;
  std::uint64_t size_ = 0;
  WatchedMap watched_;
  std::span<const std::byte> mapped_;  ///< empty where bytes are read
};

}  // namespace halfscope::log
