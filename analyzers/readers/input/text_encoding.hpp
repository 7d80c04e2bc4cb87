// SPDX-License-Identifier: Apache-2.0
// Text that is not plain UTF-8: what PowerShell and Windows editors write.
#pragma once

#include <cstdint>
#include <string_view>

#include "analyzers/readers/input/unpack.hpp"

namespace halfscope::analyzers::readers::input {

enum class Encoding : std::uint8_t {
  plain,     ///< to be read as it is
  utf8_bom,  ///< UTF-8 behind a byte order mark
  utf16_le,
  utf16_be
};

/// By the first bytes: a byte order mark, or a zero in every second byte of ASCII text.
Encoding encoding_of(std::string_view beginning);

/// Calls `sink` with a file's text as UTF-8, without its mark. What is no UTF-16 becomes U+FFFD.
/// False where the C library cannot convert it.
bool to_utf8(const log::OpenFile& file, Encoding encoding, const Sink& sink);

/// Whether bytes are text, in any encoding that goes with ASCII, as far as control characters tell.
/// Zeros, as file systems leave them after a crash, are passed over; of nothing else there is none.
bool is_text(std::string_view beginning);

/// The text behind the zeros that it begins with, of which there may be gigabytes.
std::string_view without_zeros(std::string_view text);

}  // namespace halfscope::analyzers::readers::input
