// SPDX-License-Identifier: Apache-2.0
// A temporary file for bytes that no file holds as they are read, such as unpacked data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halfscope::analyzers::readers::input {

/// A file without a name in $TMPDIR or /tmp. It disappears with the process, even after a crash. It
/// uses at most half of the free space there, since /tmp may be in memory.
class Spool {
 public:
  /// `shown` names the source of the bytes in messages. `most` is the largest number of bytes that
  /// may be written. Throws log::BadInput if the file cannot be created.
  explicit Spool(std::string shown, std::uint64_t most = UINT64_MAX);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  /// Appends bytes. Throws log::BadInput if they exceed a limit or cannot be written.
  void write(std::string_view bytes);
  std::uint64_t size() const { return size_; }
  /// Returns the file descriptor; the caller must close it.
  int release();

 private:
  [[noreturn]] void refuse(std::string_view found) const;

  std::string shown_;
  std::uint64_t most_, room_ = 0, size_ = 0;
  int descriptor_ = -1;
};

}  // namespace halfscope::analyzers::readers::input
