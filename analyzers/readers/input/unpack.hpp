// SPDX-License-Identifier: Apache-2.0
// Unpacks compressed files, piece by piece. Each format is decoded by its own library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::input {

/// The compression format of a file.
enum class Packing : std::uint8_t { none, gzip, xz, bzip2, zstd, zip };

/// Returns the format that a file's first bytes show. A ZIP archive need not be a compressed log:
/// NPZ files and files of torch.save are ZIP archives too (see files_in_zip()).
Packing packing_of(std::string_view beginning);
/// Returns the name of a format for messages, such as "gzip" or "a ZIP archive".
std::string_view name_of(Packing packing);

/// Unpacks one file piece by piece. Concatenated compressed files count as one file, as in gzip.
class Decoder {
 public:
  enum class State : std::uint8_t {
    more,      ///< the data continues
    done,      ///< the data has ended; bytes that follow do not belong to it
    damaged,   ///< the data is not valid in this format
    too_large  ///< unpacking would need more memory than a log does
  };
  struct Step {
    std::size_t taken = 0, made = 0;  ///< bytes consumed from the input, written to the output
    State state = State::more;
  };

  virtual ~Decoder() = default;
  /// Unpacks as much of `input` as fits into `output`. `last` is true if no input follows; if a
  /// step then consumes and writes nothing, the file is cut off.
  virtual Step step(std::string_view input, std::span<char> output, bool last) = 0;

 protected:
  Decoder() = default;
  Decoder(const Decoder&) = default;
  Decoder& operator=(const Decoder&) = default;
};

/// Returns a new decoder. Null for Packing::none and Packing::zip. Throws std::bad_alloc.
std::unique_ptr<Decoder> decoder_of(Packing packing);

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
