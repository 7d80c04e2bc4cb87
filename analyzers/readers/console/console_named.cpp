// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_named.hpp"

#include <cstdlib>
#include <string>
#include <utility>

#include "analyzers/readers/common/text_lines.hpp"

namespace halfscope::analyzers::readers::console {

void NamedOverflows::name(const OverflowIteration& named) {
  open_ = true;
  if (!named.iteration) {
    last_.reset();
    torn_now_ = true;
    ++torn_;
    return;
  }
  last_ = named.iteration;
  whole_now_ = true;
  ++named_[*last_].times;
}

bool NamedOverflows::scale(const Overflow& overflow) {
  if (!open_) return overflow.of_named;  // of a line that was lost
  if (!last_) return true;
  Overflow& scales = named_[*last_].scales;
  if (overflow.attempted) scales.attempted = overflow.attempted;
  if (overflow.next) scales.next = overflow.next;
  return true;
}

void NamedOverflows::other() {
  if (torn_now_ && !whole_now_) ++perhaps_;
  torn_now_ = whole_now_ = false;
}

bool NamedOverflows::is_torn(std::int64_t iteration, std::uint64_t times) const {
  const std::string digits = std::to_string(iteration);
  for (std::size_t at = 1; at < digits.size(); ++at) {
    const auto first = common::integer_in(std::string_view(digits).substr(0, at));
    const auto second = common::integer_in(std::string_view(digits).substr(at));
    const auto known = first ? named_.find(*first) : named_.end();
    // Ranks are at one iteration, or one apart.
    if (known == named_.end() || !second || std::abs(*first - *second) > 1) continue;
    if (2 * times <= known->second.times) return true;
  }
  return false;
}

std::map<std::int64_t, Overflow> NamedOverflows::since_last() {
  std::map<std::int64_t, Overflow> all;
  for (const auto& [iteration, named] : named_) {
    if (is_torn(iteration, named.times)) {
      ++torn_;
    } else {
      all.emplace(iteration, named.scales);
    }
  }
  named_.clear();
  return all;
}

}  // namespace halfscope::analyzers::readers::console
