// SPDX-License-Identifier: Apache-2.0
// Functions that open or generate each kind of data set. data.cpp selects one by name or path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "sim/data/data.hpp"

namespace halfscope::sim::data {

// Data sets in files. Each function throws log::BadInput.

/// Optical Recognition of Handwritten Digits (E. Alpaydin, C. Kaynak, UCI), the 1797 images in
/// scikit-learn. One image per line: 64 pixels from 0 to 16, then the digit.
std::unique_ptr<Data> open_digits(const std::filesystem::path& file, std::uint64_t seed);
/// Returns the file's path in an installed scikit-learn. Throws log::BadInput if there is none.
std::filesystem::path find_digits();

/// MNIST and data sets of its names and format (Y. LeCun, C. Cortes, C. Burges): four IDX files.
bool has_idx(const std::filesystem::path& folder);
std::unique_ptr<Data> open_idx(const std::filesystem::path& folder, std::uint64_t seed);

/// The binary version of CIFAR-10 (A. Krizhevsky, 2009).
bool has_cifar10(const std::filesystem::path& folder);
std::unique_ptr<Data> open_cifar10(const std::filesystem::path& folder, std::uint64_t seed);

/// Windows of a text. The labels are each position's next character (byte).
std::unique_ptr<Data> open_text(const std::filesystem::path& file, std::uint64_t seed);

// Generated data sets.
std::unique_ptr<Data> generate_text(std::uint64_t seed);
std::unique_ptr<Data> generate_blobs(std::uint64_t seed);
std::unique_ptr<Data> generate_images(std::uint64_t seed);
std::unique_ptr<Data> generate_large_images(std::uint64_t seed);
std::unique_ptr<Data> generate_boxes(std::uint64_t seed);

}  // namespace halfscope::sim::data
