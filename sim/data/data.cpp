// SPDX-License-Identifier: Apache-2.0
#include "sim/data/data.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>

#include "halfscope/log/error.hpp"
#include "sim/data/sets.hpp"
#include "sim/data/stored_file.hpp"

namespace halfscope::sim::data {
namespace fs = std::filesystem;
namespace {

struct Named {
  std::string_view name, what;
  std::unique_ptr<Data> (*make)(std::uint64_t seed);
};

constexpr std::array kNamed = {
    Named{"digits", "scikit-learn's 1797 handwritten digits, 8 x 8, of the installed package",
          [](std::uint64_t seed) { return open_digits(find_digits(), seed); }},
    Named{"blobs", "generated clusters of points, 10 classes in 32 dimensions", generate_blobs},
    Named{"images", "generated images of 10 shapes, of CIFAR-10's size", generate_images},
    Named{"boxes", "generated images, 48 x 48, with 1 to 4 boxes of 3 classes", generate_boxes},
    Named{"large-images", "64 generated images, 224 x 224, of 1000 classes, for timing",
          generate_large_images},
    Named{"text", "generated sentences", generate_text}};

constexpr const char* kFiles =
    "a folder with MNIST's IDX files, CIFAR-10's binary batches or digits.csv (each plain or .gz), "
    "or a text file";

std::unique_ptr<Data> open_folder(const fs::path& folder, std::uint64_t seed) {
  if (const auto digits = find_stored(folder, "digits.csv")) return open_digits(*digits, seed);
  if (has_idx(folder)) return open_idx(folder, seed);
  if (has_cifar10(folder)) return open_cifar10(folder, seed);
  throw log::BadInput(fmt::format("{}: no data set was found in this folder: expected {}",
                                  log::printable(folder.string()), kFiles));
}

}  // namespace

std::unique_ptr<Data> open_data(const std::string& name_or_path, std::uint64_t seed) {
  for (const Named& named : kNamed) {
    if (named.name == name_or_path) return named.make(seed);
  }
  const fs::path path(name_or_path);
  std::error_code error;
  if (fs::is_directory(path, error)) return open_folder(path, seed);
  if (!name_or_path.empty() && fs::exists(path, error)) {
    const std::string name = path.filename().string();
    if (name == "digits.csv" || name == "digits.csv.gz") return open_digits(path, seed);
    return open_text(path, seed);
  }
  std::string names;
  for (const Named& named : kNamed)
    names += std::string(names.empty() ? "" : ", ").append(named.name);
  throw log::BadInput(
      fmt::format("data '{}': no data set has this name, and there is no such file "
                  "or folder: expected {}, {}",
                  log::printable(name_or_path), names, kFiles));
}

std::vector<std::pair<std::string_view, std::string_view>> data_names() {
  std::vector<std::pair<std::string_view, std::string_view>> names;
  for (const Named& named : kNamed) names.emplace_back(named.name, named.what);
  return names;
}

}  // namespace halfscope::sim::data
