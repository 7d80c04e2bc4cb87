// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/predictions.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "halfscope/number/format_names.hpp"
#include "halfscope/number/random.hpp"

namespace halfscope::analyzers::reduction {
namespace {

constexpr std::size_t kMostPlaces = std::size_t{1} << 17;

bool is_one_of(std::uint64_t place, std::uint64_t of) {
  return of == 1 || random_word(0, place) % of == 0;
}

/// Returns a prediction; empty if no element is finite in all addends.
std::optional<Prediction> predict_from(const Sample& sample, std::string_view format,
                                       std::uint64_t count, Order order) {
  try {
    return predict(find_format(format)->format, sample.addends(), count, {.order = order});
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace

void Sample::take(std::int64_t step, const Terms& terms) {
  if (step != step_) *this = Sample();
  step_ = step;
  addends_.resize(terms.addends);
  for (std::size_t i = 0; i < terms.sums(); ++i, ++elements_) {
    if (!is_one_of(elements_, one_of_)) continue;
    places_.push_back(elements_);
    for (std::size_t a = 0; a < addends_.size(); ++a) addends_[a].push_back(terms.addend(a)[i]);
    if (places_.size() > kMostPlaces) halve();
  }
}

std::vector<std::span<const float>> Sample::addends() const {
  return {addends_.begin(), addends_.end()};
}

void Sample::halve() {
  one_of_ *= 2;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!is_one_of(places_[i], one_of_)) continue;
    places_[kept] = places_[i];
    for (std::vector<float>& addend : addends_) addend[kept] = addend[i];
    ++kept;
  }
  places_.resize(kept);
  for (std::vector<float>& addend : addends_) addend.resize(kept);
}

void Predictions::take(const std::string& log, std::int64_t step, const Terms& terms) {
  if (asked_.counts.empty() || terms.addends < kFewestRanks) return;
  samples_[{log, terms.over, terms.addends}].take(step, terms);
}

void Predictions::predict_orders(const Key& key, std::uint64_t count, std::string_view format,
                                 std::vector<Reduction>& to) const {
  const auto& [log, over, recorded] = key;
  const Sample& sample = samples_.at(key);
  std::map<Order, std::optional<Prediction>> known;
  for (const Order order : asked_.orders) {
    if (order == Order::ring && over != Over::ranks) continue;
    const Order chain = order == Order::ring ? Order::sequential : order;
    const auto [at, is_new] = known.try_emplace(chain);
    if (is_new) at->second = predict_from(sample, format, count, chain);
    if (!at->second) continue;
    Reduction& one = to.emplace_back(Reduction{log, "", Sum::gradient, over, count, format, order});
    one.facts.elements = sample.elements();
    one.facts.additions = sample.elements() * (count - 1);
    one.predicted = at->second;
  }
}

std::vector<Reduction> Predictions::finish(const frames::Progress& progress) const {
  std::vector<std::string_view> formats = asked_.formats;
  if (formats.size() > 1) std::erase(formats, "binary32");
  const std::uint64_t all = samples_.size() * asked_.counts.size() * formats.size();
  std::vector<Reduction> found;
  std::uint64_t done = 0;
  for (const auto& [key, sample] : samples_) {
    for (const std::uint64_t count : asked_.counts) {
      for (const std::string_view format : formats) {
        if (progress) progress(done++, all);
        predict_orders(key, count, format, found);
      }
    }
  }
  return found;
}

}  // namespace halfscope::analyzers::reduction
