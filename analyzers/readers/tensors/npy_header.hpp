// SPDX-License-Identifier: Apache-2.0
// Reads the start of an NPY stream: a magic number, a version, and a Python dict literal, which is
// parsed as text and never evaluated. Format: numpy.lib.format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::readers::tensors {

/// The array that an NPY header describes. Its size agrees with the length of the stream.
struct NpyArray {
  std::string skip;              ///< why it is skipped ("dtype <i8 is ..."); empty if it is read
  bool may_be_bfloat16 = false;  ///< skipped because `as` was not given: 16-bit integers
  std::vector<std::uint64_t> shape;
  Dtype dtype = Dtype::f32;
  bool big_endian = false;
  bool first_axis_fastest = false;  ///< in Fortran order
  std::uint64_t data_offset = 0;    ///< bytes from the start of the stream
};

/// Returns the first bytes of an NPY stream; fewer than asked for if the stream is shorter.
using NpyBeginning = std::function<std::vector<std::byte>(std::size_t)>;

/// Reads the header of a stream of `stream_bytes` bytes. `place` begins error messages ("g.npz:
/// tensor 'w'"). `as` (f16 or bf16) is the dtype of untyped 2-byte elements and of unsigned 16-bit
/// integers; empty if unknown. Throws log::BadInput, also for pickled objects, and for untyped
/// elements without `as`.
NpyArray read_npy_header(const NpyBeginning& beginning, std::uint64_t stream_bytes,
                         const std::string& place, std::optional<Dtype> as);

}  // namespace halfscope::analyzers::readers::tensors
