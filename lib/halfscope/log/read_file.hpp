// SPDX-License-Identifier: Apache-2.0
// Files that are read by read(): one that another program cuts short then ends in a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "halfscope/log/open_file.hpp"

namespace halfscope::log {

/// What messages say behind the name of a file that lost bytes which were to be read.
inline constexpr std::string_view kCutShort =
    "was cut short while it was read; read it again when no program rewrites it";

/// Throws BadInput with the message above.
[[noreturn]] void refuse_cut(const std::string& name);

/// An open regular file; never null. Throws BadInput where there is none or it cannot be opened;
/// never waits for a pipe.
std::shared_ptr<const OpenFile> open_regular(const OpenPath& path);

/// Reads `size` bytes from `offset` on. Throws BadInput, which begins with `name`, where the file
/// has become shorter or its disk fails.
void read_exactly(const OpenFile& file, const std::string& name, std::uint64_t offset, char* to,
                  std::size_t size);

/// The bytes of a regular file, at most the first `most`. Throws BadInput.
std::string read_text(const OpenPath& path, std::size_t most = std::string::npos);

}  // namespace halfscope::log
