// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console_ranks.hpp"

#include <numeric>

namespace halfscope::readers {
namespace {

using analyzers::PrintingRanks;
using Lengths = std::map<std::uint64_t, std::uint64_t>;

constexpr std::uint64_t kRunsThatTell = 3;       // as long each, or multiples of it, by no chance
constexpr std::uint64_t kRunsApartThatTell = 5;  // where other lines stand between
constexpr double kMostMessages = 0.8;  // where lines are torn or missing, of these the length tells

std::uint64_t runs_in(const Lengths& lengths) {
  std::uint64_t runs = 0;
  for (const auto& [length, times] : lengths) runs += times;
  return runs;
}

std::uint64_t divisor_of(const Lengths& lengths) {
  std::uint64_t divisor = 0;
  for (const auto& [length, times] : lengths) divisor = std::gcd(divisor, length);
  return divisor;
}

/// The most frequent length; 1 where too few messages stand in multiples of it.
std::uint64_t usual_length(const Lengths& lengths) {
  std::uint64_t usual = 1, most = 0;
  double messages = 0, in_multiples = 0;
  for (const auto& [length, times] : lengths) {
    if (times > most) usual = length;
    most = std::max(most, times);
  }
  for (const auto& [length, times] : lengths) {
    const auto all = static_cast<double>(length) * static_cast<double>(times);
    messages += all;
    if (length % usual == 0) in_multiples += all;
  }
  return in_multiples >= kMostMessages * messages ? usual : 1;
}

}  // namespace

void RankRuns::add(Lengths& lengths, std::uint64_t& length) {
  if (length > 0) ++lengths[length];
  length = 0;
}

void RankRuns::take(const Overflow& overflow) {
  if (overflow.rank || overflow.of_named || overflow.confirms) return;
  if (last_ && last_->scaler != overflow.scaler) return;  // Apex: of another loss
  const bool equal = last_ == overflow;
  if (!equal) add(runs_, run_);
  if (!equal || !adjacent_) add(bursts_, burst_);
  ++run_;
  ++burst_;
  last_ = overflow;
  adjacent_ = true;
}

PrintingRanks RankRuns::found() {
  add(runs_, run_);
  add(bursts_, burst_);
  PrintingRanks ranks;
  if (bursts_.empty()) return ranks;
  const std::uint64_t runs = runs_in(runs_), bursts = runs_in(bursts_);
  ranks.ranks = divisor_of(bursts_);
  ranks.certain = ranks.ranks == 1 || bursts >= kRunsThatTell;
  if (ranks.ranks > 1) return ranks;
  if (bursts >= kRunsThatTell) ranks.ranks = usual_length(bursts_);
  some_torn_ = ranks.ranks > 1;
  if (ranks.ranks == 1 && runs >= kRunsApartThatTell) ranks.ranks = divisor_of(runs_);
  ranks.certain = ranks.ranks == 1;
  return ranks;
}

}  // namespace halfscope::readers
