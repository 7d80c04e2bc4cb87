// SPDX-License-Identifier: Apache-2.0
// A compressed file as the bytes that were compressed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/readers/input/decoder.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::input {

/// Gets the bytes in order; false: no more are wanted.
using Sink = std::function<bool(std::string_view bytes)>;

/// How unpacking ended.
enum class Ending : std::uint8_t {
  whole,
  stopped,    ///< by the sink
  cut,        ///< the file ends too early
  damaged,    ///< what follows cannot be unpacked, or its checksum is wrong
  too_large,  ///< it needs more memory than a log's data would
  encrypted
};

/// Calls `sink` with what is packed, whatever the ending. Memory: some 100 MiB at most, for xz and
/// zstd with their largest windows. What `sink` throws passes through.
Ending unpack(const log::OpenFile& file, Packing packing, const Sink& sink);

/// The first bytes of what is packed, at most `most`.
std::string packed_beginning(const log::OpenFile& file, Packing packing, std::size_t most);

/// The files of a ZIP archive that a log may be among: no folders, nothing hidden, none of what
/// macOS adds. Empty where it is no archive that can be read, and where it is one of NumPy or
/// PyTorch, which others read.
std::vector<std::string> files_in_zip(const log::OpenFile& file);

}  // namespace halfscope::analyzers::readers::input
