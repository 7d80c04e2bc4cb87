// SPDX-License-Identifier: Apache-2.0
// The binade table as int64 words, layout version 1 (docs/run-log.md):
//
//   version = 1, K, cut[K],
//   zero, negative_zero, nan, positive_infinity, negative_infinity,
//   largest exponent, largest fraction, smallest exponent, smallest fraction,
//   significant_bits, lowest_bit,
//   R, then R rows of: exponent, segment[K + 1], negative
//
// An empty table has R = 0 and six zeros before it; lowest_bit is 0 if it is unknown.
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "halfscope/table/binade_table.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t kLayout = 1;
// binary64 has [-1074, 1023]; the rest is headroom for scaling. Limits the memory for bad input.
constexpr std::int64_t kMaxExponent = 4096;
constexpr std::int64_t kMaxCuts = 64;  // today's formats need 8

[[noreturn]] void reject(const std::string& what) {
  throw std::invalid_argument("binade table: " + what);
}

/// Reads words from the front, with checks.
class Words {
 public:
  explicit Words(std::span<const std::int64_t> words) : rest_(words) {}

  std::int64_t take(const char* what, std::int64_t low, std::int64_t high) {
    if (rest_.empty()) reject(std::string("ends before ") + what);
    const std::int64_t word = rest_.front();
    rest_ = rest_.subspan(1);
    if (word < low || word > high) {
      reject(std::string(what) + " is " + std::to_string(word) + ", expected " +
             std::to_string(low) + " to " + std::to_string(high));
    }
    return word;
  }
  std::uint64_t count(const char* what) {
    const std::int64_t word = take(what, 0, std::numeric_limits<std::int64_t>::max());
    if (__builtin_add_overflow(sum_, word, &sum_)) reject("counts add up to more than 2^63");
    return static_cast<std::uint64_t>(word);
  }
  int exponent(const char* what) {
    return static_cast<int>(take(what, -kMaxExponent, kMaxExponent));
  }
  std::uint64_t fraction(const char* what) {
    return static_cast<std::uint64_t>(take(what, 0, static_cast<std::int64_t>(kFractionUnit) - 1));
  }
  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::int64_t> rest_;
  std::int64_t sum_ = 0;
};

std::vector<std::uint64_t> take_cuts(Words& words) {
  std::vector<std::uint64_t> cuts;
  const std::int64_t count = words.take("number of cuts", 0, kMaxCuts);
  for (std::int64_t i = 0; i < count; ++i) cuts.push_back(words.fraction("cut"));
  return cuts;
}

struct Extremes {
  Magnitude largest, smallest;
  int significant_bits;
  int lowest_bit;
};

SpecialCounts take_specials(Words& words) {
  SpecialCounts s;
  s.zero = words.count("zero");
  s.negative_zero = words.count("negative_zero");
  s.nan = words.count("nan");
  s.positive_infinity = words.count("positive_infinity");
  s.negative_infinity = words.count("negative_infinity");
  if (s.negative_zero > s.zero) reject("more negative zeros than zeros");
  return s;
}

Extremes take_extremes(Words& words) {
  Extremes e{};
  e.largest.exponent = words.exponent("largest exponent");
  e.largest.fraction = words.fraction("largest fraction");
  e.smallest.exponent = words.exponent("smallest exponent");
  e.smallest.fraction = words.fraction("smallest fraction");
  e.significant_bits = static_cast<int>(words.take("significant_bits", 0, 53));
  e.lowest_bit = words.exponent("lowest_bit");
  return e;
}

/// Reads the number of rows and checks it against the number of remaining words.
std::int64_t take_row_count(Words& words, std::size_t words_per_row) {
  const auto most = static_cast<std::int64_t>(words.left() / words_per_row + 1);
  const std::int64_t rows = words.take("number of rows", 0, most);
  const std::size_t wanted = static_cast<std::size_t>(rows) * words_per_row;
  if (words.left() != wanted) {
    reject("holds " + std::to_string(words.left()) + " words of rows, expected " +
           std::to_string(wanted));
  }
  return rows;
}

/// Reads a row with `segments` segments into `counts`; returns its number of values.
std::uint64_t take_row(Words& words, CountList& counts, std::size_t at, std::size_t segments) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < segments; ++i) {
    const std::uint64_t count = words.count("count");
    counts.add(at + i, count);
    sum += count;
  }
  const std::int64_t negative = words.take("negative", 0, static_cast<std::int64_t>(sum));
  counts.add(at + segments, static_cast<std::uint64_t>(negative));
  return sum;
}

}  // namespace

std::vector<std::int64_t> BinadeTable::encode() const {
  std::vector<std::int64_t> words;
  words.reserve(14 + cuts().size() + row_count() * (stride() + 1));
  words.push_back(kLayout);
  const auto put = [&](auto word) { words.push_back(static_cast<std::int64_t>(word)); };
  put(cuts().size());
  for (const std::uint64_t cut : cuts()) put(cut);
  put(specials().zero);
  put(specials().negative_zero);
  put(specials().nan);
  put(specials().positive_infinity);
  put(specials().negative_infinity);
  const Magnitude largest = largest_.value_or(Magnitude{});
  const Magnitude smallest = smallest_.value_or(Magnitude{});
  put(largest.exponent);
  put(largest.fraction);
  put(smallest.exponent);
  put(smallest.fraction);
  put(significant_bits_);
  put(lowest_bit_.value_or(0));
  const std::vector<Row> occupied = rows();
  put(occupied.size());
  for (const Row& row : occupied) {
    put(row.exponent);
    for (const std::uint64_t count : row.segments) put(count);
    put(row.negative);
  }
  return words;
}

BinadeTable BinadeTable::decode(std::span<const std::int64_t> encoded) {
  Words words(encoded);
  words.take("layout version", kLayout, kLayout);
  BinadeTable table(take_cuts(words));
  table.add_specials(take_specials(words));
  const Extremes extremes = take_extremes(words);
  const std::int64_t row_count = take_row_count(words, table.stride() + 1);
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t r = 0; r < row_count; ++r) {
    const int exponent = words.exponent("row exponent");
    if (exponent <= last) reject("row exponents do not ascend");
    last = exponent;
    const std::size_t row = table.row_at(exponent);
    if (take_row(words, table.counts_, row, table.stride() - 1) == 0) reject("an empty row");
  }
  if (row_count != 0) {
    if (extremes.smallest.exponent != table.first_exponent_ || extremes.largest.exponent != last ||
        extremes.largest < extremes.smallest || extremes.significant_bits == 0) {
      reject("largest and smallest magnitude do not belong to its rows");
    }
    table.largest_ = extremes.largest;
    table.smallest_ = extremes.smallest;
    table.widen(extremes.significant_bits, extremes.lowest_bit);
  }
  if (!std::ranges::equal(table.encode(), encoded)) reject("holds words that mean nothing");
  return table;
}

}  // namespace halfscope
