// SPDX-License-Identifier: Apache-2.0
// The formats in which single files are compressed, each by its own library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace halfscope::analyzers::readers::input {

/// How a file is packed.
enum class Packing : std::uint8_t { none, gzip, xz, bzip2, zstd, zip };

/// By the first bytes. A ZIP archive may be something else than a packed log (one_member.hpp).
Packing packing_of(std::string_view beginning);
/// "gzip"; "a ZIP archive".
std::string_view name_of(Packing packing);

/// Unpacks one file piece by piece. Several compressed files in a row are one, as gzip has it.
class Decoder {
 public:
  enum class State : std::uint8_t {
    more,      ///< it goes on
    done,      ///< the data has ended; what follows is not of it
    damaged,   ///< it is not what it should be
    too_large  ///< it asks for more memory than a log's data would
  };
  struct Step {
    std::size_t taken = 0, made = 0;  ///< bytes of the input, and of the output
    State state = State::more;
  };

  virtual ~Decoder() = default;
  /// `last`: no input follows. Neither taken nor made then means that the data is cut.
  virtual Step step(std::string_view input, std::span<char> output, bool last) = 0;

 protected:
  Decoder() = default;
  Decoder(const Decoder&) = default;
  Decoder& operator=(const Decoder&) = default;
};

/// Null for none and for zip. Throws std::bad_alloc.
std::unique_ptr<Decoder> decoder_of(Packing packing);

}  // namespace halfscope::analyzers::readers::input
