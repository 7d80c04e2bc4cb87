// SPDX-License-Identifier: Apache-2.0
// NPY and NPZ. Format: numpy.lib.format, and ZIP for NPZ. Nothing is ever unpickled.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "analyzers/readers/tensors/npy_header.hpp"
#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

class ZipArchive;

/// A `.npy` file: one tensor, named after the file's stem. Mapped; only
/// big-endian data and arrays in Fortran's order are copied. Object arrays are refused, as are
/// 2-byte elements without a type unless `as` (f16 or bf16) gives it. Throws log::BadInput.
std::unique_ptr<log::TensorFile> open_npy(const log::OpenPath& path,
                                          std::optional<Dtype> as = std::nullopt);

/// A `.npz` file: one tensor a member, named after the member without `.npy`. Headers are read on
/// opening. Stored members are mapped, others unpacked one at a time by `for_each`, which throws
/// log::BadInput too where data is damaged. What one array refuses the file refuses; what members
/// may be: ZipArchive. Throws log::BadInput. Not for use by two threads at once.
std::unique_ptr<log::TensorFile> open_npz(const log::OpenPath& path,
                                          std::optional<Dtype> as = std::nullopt);
std::unique_ptr<log::TensorFile> open_npz(std::unique_ptr<ZipArchive> archive,
                                          std::optional<Dtype> as = std::nullopt);

/// Whether the elements must be rewritten before they can be viewed: another byte order, or the
/// first axis fastest.
bool is_foreign(const NpyArray& array);

/// Copies the elements of such an array into little-endian bytes and C order.
std::vector<std::byte> in_our_order(const NpyArray& array, std::span<const std::byte> data);

}  // namespace halfscope::analyzers::readers::tensors
