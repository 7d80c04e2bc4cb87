// SPDX-License-Identifier: Apache-2.0
// Repeats write() on a descriptor until all bytes are written.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

namespace halfscope::log {

/// Returns the number of bytes written: all, or fewer on an error, which is in errno.
inline std::size_t write_all(int file, std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ::ssize_t wrote = ::write(file, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  return done;
}

}  // namespace halfscope::log
