// SPDX-License-Identifier: Apache-2.0
// Bytes that lie nowhere as they are read, in a file without a name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halfscope::analyzers::readers::input {

/// A file in $TMPDIR or /tmp that goes with the process, however that ends. It takes at most half
/// of the room that is free there: where /tmp is memory, that much of it.
class Spool {
 public:
  /// `shown` is whose bytes these are, in messages. `most`: bytes that it may have. Throws
  /// log::BadInput where there is no room.
  explicit Spool(std::string shown, std::uint64_t most = UINT64_MAX);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  void write(std::string_view bytes);
  std::uint64_t size() const { return size_; }
  /// The descriptor, which is the caller's from now on.
  int release();

 private:
  [[noreturn]] void refuse(std::string_view found) const;

  std::string shown_;
  std::uint64_t most_, room_ = 0, size_ = 0;
  int descriptor_ = -1;
};

}  // namespace halfscope::analyzers::readers::input
