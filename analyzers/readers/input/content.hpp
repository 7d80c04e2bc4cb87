// SPDX-License-Identifier: Apache-2.0
// What a file is that is no log: refusals say it, and what to do.
#pragma once

#include <string>
#include <string_view>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::input {

struct Content {
  std::string is;       ///< "a PNG image", "gzip of a PNG image", "empty"
  std::string way_out;  ///< "name the log itself"
  bool lines = false;   ///< text that may be a run's output
};

/// Of a regular file as open_input() opens it, by its first bytes.
Content content_of(const log::OpenFile& file);

/// Whether bytes begin as a file of some kind that is no log.
bool is_of_other_kind(std::string_view beginning);

/// Whether a file is surely no log, though it begins as files of tensors do: an archive of other
/// files, or packed, or nothing at all.
bool is_foreign(const log::OpenFile& file);

}  // namespace halfscope::analyzers::readers::input
