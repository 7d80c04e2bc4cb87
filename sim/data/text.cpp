// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halfscope/log/error.hpp"
#include "sim/backend/random.hpp"
#include "sim/data/sets.hpp"
#include "sim/data/stored_file.hpp"

namespace halfscope::sim::data {

using backend::Random;

namespace {

constexpr std::int64_t kSteps = 32;                // characters per window
constexpr std::size_t kLeast = 20 * (kSteps + 1);  // a tenth of the text must contain windows
constexpr std::uint64_t kMostText = std::uint64_t{256} << 20;
constexpr std::size_t kGenerated = 200000;

class Text : public Data {
 public:
  Text(std::string what, const std::vector<std::uint8_t>& text, std::uint64_t seed)
      : what_(std::move(what)), seed_(seed) {
    std::array<bool, 256> seen{};
    for (const std::uint8_t byte : text) seen[byte] = true;
    std::array<std::uint8_t, 256> id{};
    for (std::size_t byte = 0; byte < seen.size(); ++byte) {
      if (seen[byte]) id[byte] = static_cast<std::uint8_t>(classes_++);
    }
    for (const std::uint8_t byte : text) ids_.push_back(id[byte]);
    held_ = ids_.size() / 10;
  }

  std::string describe() const override {
    return fmt::format("{}, {} of {} characters, {} different ones", what_, ids_.size() - held_,
                       ids_.size(), classes_);
  }
  std::int64_t classes() const override { return classes_; }
  backend::Shape example() const override { return {kSteps}; }

  Batch batch(std::int64_t index, std::int64_t size) const override {
    if (size < 1) throw log::BadInput(what_ + ": a batch has 1 window or more");
    Random random(seed_, fmt::format("data/text {}", index));
    std::vector<std::size_t> starts;
    for (std::int64_t i = 0; i < size; ++i) {
      starts.push_back(random.below(static_cast<std::uint32_t>(ids_.size() - held_ - kSteps)));
    }
    return windows(starts);
  }

  std::vector<Batch> held_out(std::int64_t size) const override {
    std::vector<Batch> made;
    std::vector<std::size_t> starts;
    for (std::size_t at = ids_.size() - held_; at + kSteps + 1 <= ids_.size(); at += kSteps) {
      starts.push_back(at);
      if (static_cast<std::int64_t>(starts.size()) < size) continue;
      made.push_back(windows(starts));
      starts.clear();
    }
    if (!starts.empty()) made.push_back(windows(starts));
    return made;
  }

 private:
  Batch windows(std::span<const std::size_t> starts) const {
    Batch made;
    for (std::size_t t = 0; t < kSteps; ++t) {
      for (const std::size_t start : starts) {
        made.ids.push_back(ids_[start + t]);
        made.labels.push_back(ids_[start + t + 1]);
      }
    }
    return made;
  }

  std::string what_;
  std::uint64_t seed_;
  std::vector<std::uint8_t> ids_;
  std::int64_t classes_ = 0;
  std::size_t held_ = 0;
};

template <std::size_t N>
std::string_view any(Random& random, const std::array<std::string_view, N>& words) {
  return words[random.below(N)];
}

void add_noun(Random& random, std::string& text) {
  static constexpr std::array<std::string_view, 10> nouns = {
      "river",  "stone",  "lantern",  "garden", "engine",
      "sailor", "window", "mountain", "letter", "bridge"};
  static constexpr std::array<std::string_view, 8> adjectives = {
      "quiet", "red", "narrow", "ancient", "bright", "heavy", "young", "silver"};
  text += "the ";
  if (random.below(2) == 0) (text += any(random, adjectives)) += ' ';
  text += any(random, nouns);
}

void add_clause(Random& random, std::string& text) {
  static constexpr std::array<std::string_view, 8> verbs = {
      "finds", "carries", "follows", "passes", "measures", "remembers", "turns", "crosses"};
  add_noun(random, text);
  ((text += ' ') += any(random, verbs)) += ' ';
  add_noun(random, text);
}

}  // namespace

std::unique_ptr<Data> open_text(const std::filesystem::path& path, std::uint64_t seed) {
  StoredFile file(path);
  const auto bytes = file.read(kMostText);
  file.end(fmt::format("the {} bytes taken of a text", kMostText));
  if (bytes.size() < kLeast) {
    file.refuse(
        fmt::format("it has {} bytes: a text to train on has {} or more", bytes.size(), kLeast));
  }
  return std::make_unique<Text>("text of " + file.name(), bytes, seed);
}

std::unique_ptr<Data> generate_text(std::uint64_t seed) {
  static constexpr std::array<std::string_view, 4> links = {" and ", " while ", " because ", ", "};
  Random random(seed, "data/sentences");
  std::string text;
  while (text.size() < kGenerated) {
    add_clause(random, text);
    if (random.below(3) == 0) {
      text += any(random, links);
      add_clause(random, text);
    }
    text += random.below(8) == 0 ? ".\n" : ". ";
  }
  text.resize(kGenerated);
  return std::make_unique<Text>("generated sentences",
                                std::vector<std::uint8_t>(text.begin(), text.end()), seed);
}

}  // namespace halfscope::sim::data
