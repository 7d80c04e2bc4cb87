// SPDX-License-Identifier: Apache-2.0
// IDX format: 0, 0, the type of the elements, the number of dimensions; then each dimension in 4
// bytes, big-endian; then the elements in row order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "halfscope/log/error.hpp"
#include "sim/data/labelled.hpp"
#include "sim/data/sets.hpp"
#include "sim/data/stored_file.hpp"

namespace halfscope::sim::data {

using backend::Shape;

namespace fs = std::filesystem;
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr std::int64_t kMostSide = 1024;

struct Idx {
  Shape shape;
  std::vector<std::uint8_t> bytes;
};

std::string_view type_name(std::uint8_t type) {
  switch (type) {
    case 0x08: return "unsigned bytes";
    case 0x09: return "signed bytes";
    case 0x0B: return "16-bit integers";
    case 0x0C: return "32-bit integers";
    case 0x0D: return "binary32";
    case 0x0E: return "binary64";
    default: return "no type of IDX";
  }
}

Idx read_idx(const fs::path& path, std::size_t rank) {
  StoredFile file(path);
  const auto magic = file.read_all(4, "the IDX header");
  if (magic[0] != 0 || magic[1] != 0) {
    file.refuse(
        fmt::format("it begins with {:02X} {:02X}, an IDX file with 00 00", magic[0], magic[1]));
  }
  if (magic[2] != kUnsignedByte || magic[3] != rank) {
    file.refuse(
        fmt::format("its header says type {:02X} ({}) in {} dimensions: expected 08 (unsigned "
                    "bytes) in {}",
                    magic[2], type_name(magic[2]), magic[3], rank));
  }
  const auto header = file.read_all(4 * rank, "the IDX header's dimensions");
  Idx idx;
  std::uint64_t size = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    std::uint64_t dimension = 0;
    for (std::size_t j = 0; j < 4; ++j) dimension = dimension << 8 | header[4 * i + j];
    idx.shape.push_back(static_cast<std::int64_t>(dimension));
    if (dimension == 0) file.refuse(fmt::format("dimension {} of its header is 0", i + 1));
    if (size > kMostBytes / dimension) {  // so the product cannot overflow
      file.refuse(fmt::format("its header says {} elements, more than the {} taken",
                              fmt::join(idx.shape, " x "), kMostBytes));
    }
    size *= dimension;
  }
  idx.bytes = file.read_rest(
      size, fmt::format("the {} elements its header says", fmt::join(idx.shape, " x ")));
  return idx;
}

/// Returns the file with MNIST's name, or with the name in some archives
/// ("train-images.idx3-ubyte").
std::optional<fs::path> find_idx(const fs::path& folder, const std::string& part, int rank) {
  if (auto found = find_stored(folder, fmt::format("{}-idx{}-ubyte", part, rank))) return found;
  return find_stored(folder, fmt::format("{}.idx{}-ubyte", part, rank));
}

fs::path need_idx(const fs::path& folder, const std::string& part, int rank) {
  if (const auto found = find_idx(folder, part, rank)) return *found;
  throw log::BadInput(
      fmt::format("{}: there is no {}-idx{}-ubyte and no such .gz: expected MNIST's four "
                  "files",
                  log::printable(folder.string()), part, rank));
}

/// Reads a part's images and labels into `examples`; returns the images' shape.
Shape read_part(const fs::path& folder, const std::string& part, Examples& examples) {
  const fs::path image_path = need_idx(folder, part + "-images", 3);
  const fs::path label_path = need_idx(folder, part + "-labels", 1);
  Idx images = read_idx(image_path, 3);
  const Idx labels = read_idx(label_path, 1);
  const std::string label_name = log::printable(label_path.string());
  if (images.shape[1] > kMostSide || images.shape[2] > kMostSide) {
    throw log::BadInput(fmt::format("{}: its images are {} x {}, more than the {} taken",
                                    log::printable(image_path.string()), images.shape[1],
                                    images.shape[2], kMostSide));
  }
  if (labels.shape[0] != images.shape[0]) {
    throw log::BadInput(fmt::format("{}: it has {} labels, and {} has {} images", label_name,
                                    labels.shape[0], log::printable(image_path.string()),
                                    images.shape[0]));
  }
  const auto bad = std::ranges::find_if(labels.bytes, [](std::uint8_t label) { return label > 9; });
  if (bad != labels.bytes.end()) {
    throw log::BadInput(fmt::format("{}: label {} is {}: expected 0 to 9", label_name,
                                    bad - labels.bytes.begin(), *bad));
  }
  examples.bytes = std::move(images.bytes);
  examples.labels.assign(labels.bytes.begin(), labels.bytes.end());
  return {images.shape[1], images.shape[2], 1};
}

}  // namespace

bool has_idx(const fs::path& folder) {
  return find_idx(folder, "train-images", 3) || find_idx(folder, "train-labels", 1) ||
         find_idx(folder, "t10k-images", 3);
}

std::unique_ptr<Data> open_idx(const fs::path& folder, std::uint64_t seed) {
  Examples train, test;
  const Shape shape = read_part(folder, "train", train);
  const Shape test_shape = read_part(folder, "t10k", test);
  if (shape != test_shape) {
    throw log::BadInput(fmt::format(
        "{}: images of train-images-idx3-ubyte are {} x {}, those of "
        "t10k-images-idx3-ubyte {} x {}: expected one size",
        log::printable(folder.string()), shape[0], shape[1], test_shape[0], test_shape[1]));
  }
  return std::make_unique<Labelled>(
      LabelledFacts{.what = "IDX files of " + log::printable(folder.string()),
                    .shape = shape,
                    .factor = 1.0F / 255},
      std::move(train), std::move(test), seed);
}

}  // namespace halfscope::sim::data
