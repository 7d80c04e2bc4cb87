// SPDX-License-Identifier: Apache-2.0
// How the files of logs are opened: compressed ones as what is in them, text in other encodings as
// UTF-8, and standard input under its name. Every reader then sees plain bytes.
#pragma once

#include <filesystem>
#include <memory>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::input {

/// Never null, never throws log::BadInput: what went wrong is said of the file. One that is surely
/// no log (gzip of an image) stays packed.
/// arrival: of its bytes, where they do not lie there yet.
std::shared_ptr<const log::OpenFile> open_input(const std::filesystem::path& path,
                                                std::shared_ptr<log::Arrival> arrival = nullptr);

/// Files that are opened like this.
log::OpenFiles open_files();

}  // namespace halfscope::analyzers::readers::input
