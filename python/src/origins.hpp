// SPDX-License-Identifier: Apache-2.0
// The origin of the logs of a call: files of this machine, or bytes that a Python object fetches.
#pragma once

#include <nanobind/nanobind.h>

#include <filesystem>
#include <vector>

#include "analyzers/count/count_parts.hpp"

namespace halfscope::python {

/// source: None, or an object that fills the files at `logs`, with
///   need(path, begin, end): returns '' once these bytes are in the file, or an error message;
///   leave(path, begin, end): called when these bytes are not needed for now;
///   renamed: pairs of a path's beginning and the text that replaces it in messages and records.
/// May be called without the GIL.
analyzers::count::Origin origin_of(const std::vector<std::filesystem::path>& logs,
                                   nanobind::handle source);

}  // namespace halfscope::python
