// SPDX-License-Identifier: Apache-2.0
// Names the content of files that are not logs, for error messages.
#pragma once

#include <string>
#include <string_view>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::input {

/// The content of a file, and what the user can do about it.
struct Content {
  std::string is;       ///< kind of file: "a PNG image", "gzip of a PNG image", "empty"
  std::string way_out;  ///< advice to the user, such as "name the log itself"
  bool lines = false;   ///< true if the file is text that may be a run's output
};

/// Returns the content of a regular file that open_input() opened, judged by its first bytes.
Content content_of(const log::OpenFile& file);

/// Returns true if bytes begin like a known kind of file that is not a log, such as an image.
bool is_of_other_kind(std::string_view beginning);

/// Returns true if a file is certainly no tensor file: it is empty, it could not be unpacked, it is
/// still compressed, or it is a ZIP archive of other files.
bool is_foreign(const log::OpenFile& file);

}  // namespace halfscope::analyzers::readers::input
