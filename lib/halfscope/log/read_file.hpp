// SPDX-License-Identifier: Apache-2.0
// Files read by read(), so that truncation by another program causes an error message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "halfscope/log/open_file.hpp"

namespace halfscope::log {

/// Text that follows the file's name in the message about a file truncated while it was read.
inline constexpr std::string_view kCutShort =
    "was cut short while it was read; read it again when no program rewrites it";

/// Throws BadInput with the name and kCutShort.
[[noreturn]] void refuse_cut(const std::string& name);

/// Opens a regular file; never returns null, never waits for a pipe. Throws BadInput if there is
/// none or it cannot be opened.
std::shared_ptr<const OpenFile> open_regular(const OpenPath& path);

/// Reads `size` bytes from `offset`. Throws BadInput, beginning with `name`, if the file has become
/// shorter or the disk fails.
void read_exactly(const OpenFile& file, const std::string& name, std::uint64_t offset, char* to,
                  std::size_t size);

/// Returns the bytes of a regular file, at most the first `most`. Throws BadInput.
std::string read_text(const OpenPath& path, std::size_t most = std::string::npos);

}  // namespace halfscope::log
