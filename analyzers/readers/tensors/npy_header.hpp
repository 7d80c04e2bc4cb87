// SPDX-License-Identifier: Apache-2.0
// Reads the start of an NPY stream: a magic number, a version, and a Python dict literal, which is
// parsed as text and never evaluated. Format: numpy.lib.format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Largest size in bytes of the part before the dict literal: magic, version and header length.
inline constexpr std::size_t kNpyPreamble = 12;

/// The array that an NPY header describes. Its size agrees with the length of the stream.
struct NpyArray {
  std::string skip;              ///< why it is skipped ("dtype <i8 is ..."); empty if it is read
  bool may_be_bfloat16 = false;  ///< skipped because `as` was not given: 16-bit integers
  std::vector<std::uint64_t> shape;
  Dtype dtype = Dtype::f32;
  bool big_endian = false;
  bool first_axis_fastest = false;  ///< in Fortran order, and that differs from C order
  std::uint64_t count = 0;          ///< number of elements
  std::uint64_t data_offset = 0;    ///< bytes from the start of the stream
};

/// Returns the offset of the data in bytes. `start` is the first kNpyPreamble bytes of the stream
/// (fewer if the stream is shorter), `stream_bytes` its length. `place` begins error messages
/// ("g.npz: tensor 'w'"). Throws log::BadInput.
std::uint64_t npy_data_offset(std::span<const std::byte> start, std::uint64_t stream_bytes,
                              const std::string& place);

/// Reads `header`, the first npy_data_offset() bytes of a stream of `stream_bytes` bytes. `as` (f16
/// or bf16) is the dtype of untyped 2-byte elements and of unsigned 16-bit integers; empty if
/// unknown. Throws log::BadInput, also for pickled objects, and for untyped elements without `as`.
NpyArray read_npy_header(std::span<const std::byte> header, std::uint64_t stream_bytes,
                         const std::string& place, std::optional<Dtype> as = std::nullopt);

}  // namespace halfscope::analyzers::readers::tensors
