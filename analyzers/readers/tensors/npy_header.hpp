// SPDX-License-Identifier: Apache-2.0
// The start of an NPY stream: a magic number, a version, and a Python dict literal, which is parsed
// as text and never evaluated. Format: numpy.lib.format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Bytes that say how long the header is: magic, version, length (one 16 or 32 bits wide).
inline constexpr std::size_t kNpyPreamble = 12;

/// The array of an NPY stream, checked against the length of the stream.
struct NpyArray {
  std::string skip;              ///< why nothing can be counted ("dtype <i8 is ..."); else empty
  bool may_be_bfloat16 = false;  ///< skipped, but `as` can say what its elements stand for
  std::vector<std::uint64_t> shape;
  Dtype dtype = Dtype::f32;
  bool big_endian = false;
  bool first_axis_fastest = false;  ///< Fortran's order, where it differs from C's
  std::uint64_t count = 0;          ///< elements
  std::uint64_t data_offset = 0;    ///< from the start of the stream
};

/// Where the data begins, from the first kNpyPreamble bytes of a stream (all of a shorter one) and
/// its whole length. `place` begins messages ("g.npz: tensor 'w'"). Throws log::BadInput.
std::uint64_t npy_data_offset(std::span<const std::byte> start, std::uint64_t stream_bytes,
                              const std::string& place);

/// Reads the header, the first npy_data_offset() bytes of a stream of `stream_bytes`. Pickled
/// objects and bfloat16 without its name are refused: throws log::BadInput. `as` (f16 or bf16) is
/// what elements of 2 bytes without a type, and 16-bit whole numbers, stand for.
NpyArray read_npy_header(std::span<const std::byte> header, std::uint64_t stream_bytes,
                         const std::string& place, std::optional<Dtype> as = std::nullopt);

}  // namespace halfscope::analyzers::readers::tensors
