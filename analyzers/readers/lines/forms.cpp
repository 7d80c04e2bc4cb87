// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/lines/forms.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halfscope::analyzers::readers::lines {
namespace {

/// Returns true for a finite number. It may be different in the next line of the form.
bool is_number(const Pair& pair) { return std::isfinite(pair.value) && !pair.is_truth; }

/// Returns true for a sign or a point.
bool is_mark(char c) { return c == '-' || c == '+' || c == '.'; }

/// Returns true if words end as "1.0E-" does. "1.0E-400" is too small for binary64 and is read as
/// words and a number, but with other digits, as in "1.0E-40", the whole is a number.
bool ends_in_exponent(std::string_view words) {
  if (!words.ends_with('-') && !words.ends_with('+')) return false;
  words.remove_suffix(1);
  return words.ends_with('e') || words.ends_with('E');
}

}  // namespace

void Form::set(std::string_view line, const std::vector<Pair>& pairs) {
  constexpr std::size_t kLongest = 4096;
  slots_.clear();
  line_ = line.substr(0, kLongest);
  if (line.size() > kLongest) return;
  const auto place = [&](std::string_view text) {
    return static_cast<std::size_t>(text.data() - line.data());
  };
  std::size_t begin = 0;
  for (const Pair& pair : pairs) {
    Slot slot{pair, begin};
    slot.value = place(pair.text);
    slot.words = line.substr(begin, slot.value - begin).find_last_not_of(' ') + 1;
    if (ends_in_exponent(line.substr(begin, slot.words))) return slots_.clear();
    slot.name = pair.name.empty() ? begin : place(pair.name);
    slot.is_number = is_number(pair);
    slots_.push_back(slot);
    begin = slot.value + pair.text.size();
  }
  rest_ = begin;
}

bool Form::read(std::string_view line, std::vector<Pair>& pairs) const {
  pairs.clear();
  const std::string_view known = line_;
  std::size_t at = 0;
  for (const Slot& slot : slots_) {
    if (!line.substr(at).starts_with(known.substr(slot.begin, slot.words))) return false;
    const std::size_t words = std::exchange(at, at + slot.words);
    const bool blanks = slot.begin + slot.words < slot.value;
    const std::size_t value = std::min(line.find_first_not_of(' ', at), line.size());
    if ((at < value) != blanks || !begins_value(line, value)) return false;
    if (is_mark(line[value]) != is_mark(known[slot.value])) return false;  // "/ 5" is a total
    Pair& pair = pairs.emplace_back(slot.pair);
    const std::string_view before = known.substr(slot.value, pair.text.size());
    if (!set_value(line, value, pair) || is_number(pair) != slot.is_number) return false;
    if (!slot.is_number && pair.text != before) return false;
    pair.name = line.substr(words + slot.name - slot.begin, pair.name.size());
    at = value + pair.text.size();
    pair.unit = line.substr(at, pair.unit.size());
  }
  return !slots_.empty() && line.substr(at) == known.substr(rest_);
}

void Forms::read(std::string_view line) {
  is_new_ = false;
  for (std::size_t i = 0; i < kMost; ++i) {
    const std::size_t place = (place_ + i) % kMost;
    if (!forms_[place].read(line, pairs_)) continue;
    place_ = place;
    return;
  }
  is_new_ = true;
  find_pairs(line, pairs_);
  place_ = std::exchange(next_, (next_ + 1) % kMost);
  forms_[place_].set(line, pairs_);
}

}  // namespace halfscope::analyzers::readers::lines
