// SPDX-License-Identifier: Apache-2.0
// What must hold of everything a reader of a foreign log hands on.
#pragma once

#include <filesystem>

#include "analyzers/readers/common/timeline.hpp"
#include "input.hpp"

namespace halfscope::fuzz {

using analyzers::readers::common::Reads;
using analyzers::readers::common::Recognises;

/// Asks the reader whether a file or folder is its log, and reads it whatever the answer: as it is,
/// and with a loss scale given. Then has the program answer what follows from it.
void read_log(Recognises& recognises, Reads& read, const std::filesystem::path& log);

/// The same of a folder of the input's files (files_in()), or of its one file.
void read_files(Recognises& recognises, Reads& read, Bytes bytes);

}  // namespace halfscope::fuzz
