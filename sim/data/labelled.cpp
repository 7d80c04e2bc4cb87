// SPDX-License-Identifier: Apache-2.0
#include "sim/data/labelled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "halfscope/log/error.hpp"
#include "sim/backend/random.hpp"

namespace halfscope::sim::data {
namespace {

void append(Examples& to, const Examples& from, std::size_t i, std::size_t values) {
  const auto begin = from.bytes.begin() + static_cast<std::ptrdiff_t>(i * values);
  to.bytes.insert(to.bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(values));
  to.labels.push_back(from.labels[i]);
}

}  // namespace

Labelled::Labelled(LabelledFacts facts, Examples train, Examples test, std::uint64_t seed)
    : facts_(std::move(facts)), train_(std::move(train)), test_(std::move(test)), seed_(seed) {}

std::unique_ptr<Labelled> Labelled::divided(LabelledFacts facts, const Examples& all,
                                            std::int64_t held, std::uint64_t seed) {
  const auto values = static_cast<std::size_t>(backend::elements(facts.shape));
  const auto order = backend::permutation(static_cast<std::uint32_t>(all.labels.size()),
                                          backend::Random(seed, "data/split"));
  Examples train, test;
  for (std::size_t i = 0; i < order.size(); ++i) {
    append(i < static_cast<std::size_t>(held) ? test : train, all, order[i], values);
  }
  return std::make_unique<Labelled>(std::move(facts), std::move(train), std::move(test), seed);
}

std::string Labelled::describe() const {
  const std::size_t train = train_.labels.size(), test = test_.labels.size();
  return fmt::format("{}, {} of {} images", facts_.what, train, train + test);
}

Batch Labelled::take(const Examples& from, std::span<const std::uint32_t> which) const {
  const auto values = static_cast<std::size_t>(backend::elements(facts_.shape));
  Batch made;
  made.shape = facts_.shape;
  made.shape.insert(made.shape.begin(), static_cast<std::int64_t>(which.size()));
  made.inputs.reserve(which.size() * values);
  for (const std::uint32_t i : which) {
    made.labels.push_back(from.labels[i]);
    for (std::size_t j = 0; j < values; ++j) {
      made.inputs.push_back((static_cast<float>(from.bytes[i * values + j]) - facts_.offset) *
                            facts_.factor);
    }
  }
  return made;
}

Batch Labelled::batch(std::int64_t index, std::int64_t size) const {
  const auto count = static_cast<std::int64_t>(train_.labels.size());
  if (size < 1 || size > count) {
    throw log::BadInput(
        fmt::format("{}: a batch of {} is asked for, the training part has {} "
                    "images: take a batch of 1 to {}",
                    facts_.what, size, count, count));
  }
  const std::int64_t epoch = index / (count / size);
  const std::int64_t first = index % (count / size) * size;
  const std::scoped_lock lock(guard_);
  if (epoch != epoch_) {
    order_ = backend::permutation(static_cast<std::uint32_t>(count),
                                  backend::Random(seed_, fmt::format("data/epoch {}", epoch)));
    epoch_ = epoch;
  }
  return take(train_, std::span(order_).subspan(static_cast<std::size_t>(first),
                                                static_cast<std::size_t>(size)));
}

std::vector<Batch> Labelled::held_out(std::int64_t size) const {
  std::vector<std::uint32_t> order(test_.labels.size());
  std::iota(order.begin(), order.end(), 0U);
  std::vector<Batch> made;
  const auto step = static_cast<std::size_t>(std::max<std::int64_t>(size, 1));
  for (std::size_t first = 0; first < order.size(); first += step) {
    made.push_back(
        take(test_, std::span(order).subspan(first, std::min(step, order.size() - first))));
  }
  return made;
}

}  // namespace halfscope::sim::data
