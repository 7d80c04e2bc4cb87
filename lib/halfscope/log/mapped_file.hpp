// SPDX-License-Identifier: Apache-2.0
// A file of tensors as read-only memory. Programs map the file: the system loads pages on access,
// so the file may be larger than memory. Without a SIGBUS handler (cut_maps.hpp), as in Python, the
// requested bytes are read instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "halfscope/log/cut_maps.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::log {

/// Bytes of a file, valid while both `owner` and the MappedFile exist.
struct FileBytes {
  std::shared_ptr<const std::byte[]> owner;  ///< null if the bytes are mapped or in memory
  std::span<const std::byte> bytes;
};

/// An open regular file. The constructor throws BadInput if there is none or it cannot be read.
class MappedFile {
 public:
  /// by_need: if the file's bytes arrive later (Arrival), range() waits only for the bytes that it
  /// returns; otherwise the constructor waits for the whole file.
  explicit MappedFile(const OpenPath& path, bool by_need = false);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// Size of the file in bytes when it was opened.
  std::uint64_t size() const { return size_; }
  /// Returns the bytes [begin, end), which must be within size(). Throws BadInput if bytes that
  /// arrive later cannot be fetched, or if they are read and the file was truncated.
  FileBytes range(std::uint64_t begin, std::uint64_t end) const;
  /// Copies to.size() bytes from `begin`; returns false if the file is shorter.
  bool copy(std::uint64_t begin, std::span<std::byte> to) const;
  /// Throws BadInput if the file is shorter than when it was opened.
  void check_size() const;
  /// Releases the process's pages of [begin, end), which are not needed for now. The bytes can
  /// still be read again, from the page cache.
  void leave(std::uint64_t begin, std::uint64_t end) const;
  /// The path in printable form, for messages.
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::shared_ptr<const OpenFile> file_;
  std::uint64_t size_ = 0;
  WatchedMap watched_;
  std::span<const std::byte> mapped_;  ///< empty if bytes are read instead of mapped
};

}  // namespace halfscope::log
