// SPDX-License-Identifier: Apache-2.0
// Reads NPY and NPZ files. Format: numpy.lib.format, and ZIP for NPZ. Nothing is ever unpickled.
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

/// Opens a `.npy` file: one tensor, named like the file's stem. Only big-endian or Fortran-order
/// data is copied; else it is mapped. `as`: see read_npy_header(). Throws log::BadInput.
std::unique_ptr<log::TensorFile> open_npy(const log::OpenPath& path,
                                          std::optional<Dtype> as = std::nullopt);

/// Opens a `.npz` file: one tensor for each member, named like the member without `.npy`. All
/// headers are read here. Stored members are mapped; deflated members are unpacked when they are
/// loaded, which throws log::BadInput if data is damaged. Throws log::BadInput if open_npy() would
/// refuse one of the arrays, or ZipArchive one of the members. Not for use by two threads at once.
std::unique_ptr<log::TensorFile> open_npz(const log::OpenPath& path,
                                          std::optional<Dtype> as = std::nullopt);
std::unique_ptr<log::TensorFile> open_npz(std::unique_ptr<ZipArchive> archive,
                                          std::optional<Dtype> as = std::nullopt);

/// Returns true if elements must be copied to be viewed: they are big-endian or in Fortran order.
bool is_foreign(const NpyArray& array);

/// Returns the elements of an array with is_foreign() as little-endian bytes in C order.
std::vector<std::byte> in_our_order(const NpyArray& array, std::span<const std::byte> data);

}  // namespace halfscope::analyzers::readers::tensors
