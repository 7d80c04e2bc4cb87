// SPDX-License-Identifier: Apache-2.0
// Every kind of data set, one file each; data.cpp picks one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "sim/data/data.hpp"

namespace halfscope::sim::data {

// From files. Each throws log::BadInput.

/// Optical Recognition of Handwritten Digits (E. Alpaydin, C. Kaynak, UCI), the 1797 images that
/// scikit-learn ships: a line an image, 64 pixels from 0 to 16 and the digit.
std::unique_ptr<Data> open_digits(const std::filesystem::path& file, std::uint64_t seed);
/// The file of an installed scikit-learn, wherever that is; throws where there is none.
std::filesystem::path find_digits();

/// MNIST and what has its names and format (Y. LeCun, C. Cortes, C. Burges): four IDX files.
bool has_idx(const std::filesystem::path& folder);
std::unique_ptr<Data> open_idx(const std::filesystem::path& folder, std::uint64_t seed);

/// CIFAR-10's binary version (A. Krizhevsky, 2009).
bool has_cifar10(const std::filesystem::path& folder);
std::unique_ptr<Data> open_cifar10(const std::filesystem::path& folder, std::uint64_t seed);

/// Windows of a text, to predict each next character (byte).
std::unique_ptr<Data> open_text(const std::filesystem::path& file, std::uint64_t seed);

// Generated.
std::unique_ptr<Data> generate_text(std::uint64_t seed);
std::unique_ptr<Data> generate_blobs(std::uint64_t seed);
std::unique_ptr<Data> generate_images(std::uint64_t seed);
std::unique_ptr<Data> generate_large_images(std::uint64_t seed);
std::unique_ptr<Data> generate_boxes(std::uint64_t seed);

}  // namespace halfscope::sim::data
