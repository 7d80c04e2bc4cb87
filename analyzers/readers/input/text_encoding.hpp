// SPDX-License-Identifier: Apache-2.0
// Text with a byte order mark or in UTF-16, as PowerShell and Windows editors write it.
#pragma once

#include <cstdint>
#include <string_view>

#include "analyzers/readers/input/unpack.hpp"

namespace halfscope::analyzers::readers::input {

enum class Encoding : std::uint8_t {
  plain,     ///< needs no conversion
  utf8_bom,  ///< UTF-8 after a byte order mark
  utf16_le,
  utf16_be
};

/// Returns the encoding, judged by a byte order mark or by ASCII with zero in every second byte.
Encoding encoding_of(std::string_view beginning);

/// Calls `sink` with a file's text as UTF-8, without the byte order mark. Invalid UTF-16 becomes
/// U+FFFD. Returns false if the C library cannot convert the encoding.
bool to_utf8(const log::OpenFile& file, Encoding encoding, const Sink& sink);

/// Returns true if bytes look like text in an encoding that contains ASCII: at most one control
/// character for every 100 others. Zeros are ignored, because file systems write them after a
/// crash; bytes that are all zero are not text.
bool is_text(std::string_view beginning);

/// Returns the text after its leading zeros. Fast also for gigabytes of zeros.
std::string_view without_zeros(std::string_view text);

}  // namespace halfscope::analyzers::readers::input
