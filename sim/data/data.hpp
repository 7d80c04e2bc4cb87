// SPDX-License-Identifier: Apache-2.0
// Training data. A batch depends only on the seed and the batch's index, so a run that continues
// from a checkpoint gets the same batches as one that was not interrupted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/backend/tensor.hpp"

namespace halfscope::sim::data {

/// A ground-truth box: corners in [0, 1], relative to the image, and a class, from 0.
struct Box {
  float left = 0, top = 0, right = 0, bottom = 0;
  std::int32_t label = 0;
};

struct Batch {
  backend::Shape shape;  ///< shape of `inputs`, (N, H, W, C); empty for text
  std::vector<float> inputs;
  std::vector<std::int32_t> ids;        ///< text only: (T, N) characters, time first
  std::vector<std::int32_t> labels;     ///< one per row; for text (T, N), each next character
  std::vector<std::vector<Box>> boxes;  ///< detection only: one list per image
};

class Data {
 public:
  virtual ~Data() = default;
  virtual std::string describe() const = 0;  ///< "scikit-learn digits, 1437 of 1797 images"
  virtual std::int64_t classes() const = 0;
  virtual backend::Shape example() const = 0;  ///< shape of one input: (H, W, C); (T) for text
  /// Returns batch `index` of the training part, which is shuffled again for each epoch.
  virtual Batch batch(std::int64_t index, std::int64_t size) const = 0;
  /// Returns the held-out part, in order; empty if there is none.
  virtual std::vector<Batch> held_out(std::int64_t size) const = 0;
};

/// Opens a data set. Names: "digits" (from an installed scikit-learn), and "blobs", "images" (the
/// shape of CIFAR-10), "boxes" and "text", which are generated from the seed. Paths: a folder with
/// IDX files (named as in MNIST, .gz or not), CIFAR-10's binary batches or digits.csv(.gz), or a
/// text file. Throws log::BadInput, which names the file, the position, and the found and expected
/// contents.
std::unique_ptr<Data> open_data(const std::string& name_or_path, std::uint64_t seed);

/// Returns the names of the generated data sets with a description of each.
std::vector<std::pair<std::string_view, std::string_view>> data_names();

}  // namespace halfscope::sim::data
