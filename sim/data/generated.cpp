// SPDX-License-Identifier: Apache-2.0
#include "sim/data/generated.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"

namespace halfscope::sim::data {
namespace {

constexpr std::int64_t kHeld = 512;

}  // namespace

Batch Generated::draw_all(std::string_view part, std::int64_t first, std::int64_t count) const {
  Batch made;
  made.shape = shape_;
  made.shape.insert(made.shape.begin(), count);
  made.inputs.reserve(static_cast<std::size_t>(backend::elements(made.shape)));
  for (std::int64_t i = first; i < first + count; ++i) {
    draw(backend::Random(seed_, fmt::format("data/{}/{} {}", name_, part, i)), made);
  }
  return made;
}

Batch Generated::batch(std::int64_t index, std::int64_t size) const {
  if (size < 1) throw log::BadInput(name_ + ": a batch needs 1 example or more");
  return draw_all("train", index * size, size);
}

std::vector<Batch> Generated::held_out(std::int64_t size) const {
  std::vector<Batch> made;
  const std::int64_t step = std::max<std::int64_t>(size, 1);
  for (std::int64_t first = 0; first < kHeld; first += step) {
    made.push_back(draw_all("test", first, std::min(step, kHeld - first)));
  }
  return made;
}

}  // namespace halfscope::sim::data
