// SPDX-License-Identifier: Apache-2.0
// CIFAR-10's binary version: records of a label and 1024 red, 1024 green, 1024 blue pixels, each
// plane 32 x 32 in row order; no header.
#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "halfscope/log/error.hpp"
#include "sim/data/labelled.hpp"
#include "sim/data/sets.hpp"
#include "sim/data/stored_file.hpp"

namespace halfscope::sim::data {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kPlane = std::size_t{32} * 32, kRecord = 1 + 3 * kPlane;
constexpr std::uint64_t kMostRecords = 100000;
constexpr std::array kTraining = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                  "data_batch_4.bin", "data_batch_5.bin"};
constexpr const char* kTest = "test_batch.bin";

fs::path folder_of(const fs::path& folder) {
  const fs::path unpacked = folder / "cifar-10-batches-bin";
  return find_stored(unpacked, kTraining[0]) ? unpacked : folder;
}

void read_records(const fs::path& folder, const char* name, Examples& examples) {
  const auto path = find_stored(folder, name);
  if (!path) {
    throw log::BadInput(
        fmt::format("{}: there is no {} and no such .gz: expected data_batch_1.bin to "
                    "data_batch_5.bin and test_batch.bin",
                    log::printable(folder.string()), name));
  }
  StoredFile file(*path);
  const std::vector<std::uint8_t> bytes = file.read(kMostRecords * kRecord);
  file.end(fmt::format("the {} images taken of one file", kMostRecords));
  if (bytes.empty() || bytes.size() % kRecord != 0) {
    file.refuse(
        fmt::format("its {} bytes are no whole number of records of {} bytes; a batch of "
                    "CIFAR-10 has 30730000 bytes (CIFAR-100's records are of 3074 and are "
                    "not taken)",
                    bytes.size(), kRecord));
  }
  for (std::size_t at = 0; at < bytes.size(); at += kRecord) {
    if (bytes[at] > 9) {
      file.refuse(fmt::format("the label of image {}, at byte {}, is {}: expected 0 to 9",
                              at / kRecord, at, bytes[at]));
    }
    examples.labels.push_back(bytes[at]);
    for (std::size_t pixel = 0; pixel < kPlane; ++pixel) {
      for (std::size_t plane = 0; plane < 3; ++plane) {
        examples.bytes.push_back(bytes[at + 1 + plane * kPlane + pixel]);
      }
    }
  }
}

}  // namespace

bool has_cifar10(const fs::path& folder) {
  return find_stored(folder_of(folder), kTraining[0]) || find_stored(folder_of(folder), kTest);
}

std::unique_ptr<Data> open_cifar10(const fs::path& folder, std::uint64_t seed) {
  Examples train, test;
  for (const char* name : kTraining) read_records(folder_of(folder), name, train);
  read_records(folder_of(folder), kTest, test);
  // Scales to about mean 0 and deviation 1: CIFAR-10's channel means are 0.45 to 0.49 of 255, its
  // deviations 0.25.
  return std::make_unique<Labelled>(
      LabelledFacts{.what = "CIFAR-10", .shape = {32, 32, 3}, .factor = 4.0F / 255, .offset = 120},
      std::move(train), std::move(test), seed);
}

}  // namespace halfscope::sim::data
