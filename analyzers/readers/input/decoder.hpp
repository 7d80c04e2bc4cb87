// SPDX-License-Identifier: Apache-2.0
// Decoders of compressed files. Each format is decoded by its own library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

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

}  // namespace halfscope::analyzers::readers::input
