// SPDX-License-Identifier: Apache-2.0
// Where the logs of a call lie: on this machine, or where Python gets their bytes from.
#pragma once

#include <nanobind/nanobind.h>

#include <filesystem>
#include <vector>

#include "analyzers/count/count_parts.hpp"

namespace halfscope::python {

/// source: None, or an object that fills the files at `logs`, with
///   need(path, begin, end): returns when these bytes lie in the file: '', or why they do not;
///   leave(path, begin, end): they are not needed for now;
///   renamed: pairs of what paths begin with, and how messages and records show that.
/// May be called without the GIL.
analyzers::count::Origin origin_of(const std::vector<std::filesystem::path>& logs,
                                   nanobind::handle source);

}  // namespace halfscope::python
