// SPDX-License-Identifier: Apache-2.0
// Unpacks compressed files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/readers/input/decoder.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::input {

/// Receives unpacked bytes in order. Returns false to stop.
using Sink = std::function<bool(std::string_view bytes)>;

/// How unpacking ended.
enum class Ending : std::uint8_t {
  whole,      ///< everything was unpacked
  stopped,    ///< the sink returned false
  cut,        ///< the file ends too early
  damaged,    ///< the rest cannot be unpacked, or a checksum is wrong
  too_large,  ///< unpacking would need more memory than a log does
  encrypted
};

/// Calls `sink` with the unpacked bytes until unpacking ends. In a ZIP archive, unpacks the first
/// of files_in_zip(). Needs at most 256 MiB of memory. Does not catch exceptions of `sink`.
Ending unpack(const log::OpenFile& file, Packing packing, const Sink& sink);

/// Returns the first unpacked bytes, at most `most`.
std::string packed_beginning(const log::OpenFile& file, Packing packing, std::size_t most);

/// Returns the names of the files in a ZIP archive that may be logs: without folders, hidden files
/// and the files that macOS adds. Empty if the archive cannot be read, or if NumPy or PyTorch wrote
/// it (a tensor file, which has its own reader).
std::vector<std::string> files_in_zip(const log::OpenFile& file);

}  // namespace halfscope::analyzers::readers::input
