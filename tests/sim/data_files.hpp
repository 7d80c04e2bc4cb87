// SPDX-License-Identifier: Apache-2.0
// Files of data sets made by hand, and what is said of bad ones.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sim/data/data.hpp"
#include "temp_folder.hpp"

namespace data_test {

using namespace halfscope;
using namespace halfscope::sim;
using Catch::Matchers::Contains;
using test::message_of;
using test::TempFolder;

inline std::string zipped(const std::string& bytes) {
  const TempFolder folder;
  const auto path = folder / "file.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  if (!bytes.empty()) gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

inline std::string idx(std::uint32_t magic, std::vector<std::uint32_t> dimensions,
                       const std::string& elements) {
  std::string bytes = big_endian(magic);
  for (const std::uint32_t dimension : dimensions) bytes += big_endian(dimension);
  return bytes + elements;
}

/// Six training images of 2 x 3 and two test images, pixel by pixel 0, 1, 2, ...; label i of image
/// i.
inline std::map<std::string, std::string> mnist() {
  std::string pixels, labels;
  for (int i = 0; i < 36; ++i) pixels += static_cast<char>(i);
  for (int i = 0; i < 6; ++i) labels += static_cast<char>(i);
  return {{"train-images-idx3-ubyte", idx(0x803, {6, 2, 3}, pixels)},
          {"train-labels-idx1-ubyte", idx(0x801, {6}, labels)},
          {"t10k-images-idx3-ubyte", idx(0x803, {2, 2, 3}, pixels.substr(0, 12))},
          {"t10k-labels-idx1-ubyte", idx(0x801, {2}, labels.substr(0, 2))}};
}

/// Two records a file: label i, red 10, green 20, blue 30 but for the second pixel, red 11.
inline std::map<std::string, std::string> cifar() {
  std::string two;
  for (const char label : {'\3', '\7'}) {
    two += label + std::string(1024, '\12') + std::string(1024, '\24') + std::string(1024, '\36');
    two[two.size() - 3072 + 1] = '\13';
  }
  std::map<std::string, std::string> files = {{"test_batch.bin", two}};
  for (const char digit : {'1', '2', '3', '4', '5'}) {
    files[std::string("data_batch_") + digit + ".bin"] = two;
  }
  return files;
}

inline std::string digits() {
  std::string text;
  for (int i = 0; i < 1797; ++i) {
    for (int pixel = 0; pixel < 64; ++pixel) text += std::to_string((i + pixel) % 17) + ",";
    text += std::to_string(i % 10) + "\n";
  }
  return text;
}

inline void write_all(const TempFolder& folder, const std::map<std::string, std::string>& files) {
  for (const auto& [name, bytes] : files) folder.write(name, bytes);
}

inline std::string refused(const std::filesystem::path& path) {
  const std::string message = message_of([&] { data::open_data(path.string(), 1); });
  CHECK(message.find('\n') == std::string::npos);
  return message;
}

/// What is said of a folder in which one file is another than it should be.
inline std::string refused(std::map<std::string, std::string> files, const std::string& name,
                           const std::string& bytes) {
  const TempFolder folder;
  files[name] = bytes;
  write_all(folder, files);
  const std::string message = refused((folder / "x").parent_path());
  CHECK_THAT(message, Contains(name));
  return message;
}

inline bool same(const data::Batch& a, const data::Batch& b) {
  return a.shape == b.shape && a.inputs == b.inputs && a.ids == b.ids && a.labels == b.labels &&
         a.boxes.size() == b.boxes.size();
}

inline constexpr std::uint32_t kImages = 0x803;
inline const std::string kTrain = "train-images-idx3-ubyte", kLabels = "train-labels-idx1-ubyte";

}  // namespace data_test
