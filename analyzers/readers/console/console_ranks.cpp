// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_ranks.hpp"

#include <algorithm>
#include <numeric>

namespace halfscope::analyzers::readers::console {
namespace {

using frames::PrintingRanks;
using Lengths = std::map<std::uint64_t, std::uint64_t>;

constexpr std::size_t kMessagesThatTell = 3;     // as long each, or multiples of it, by no chance
constexpr std::uint64_t kRunsApartThatTell = 5;  // where other lines stand between
constexpr std::uint64_t kMostRunsAReturn = 4;    // where messages of ranks are mixed
constexpr double kMostMessages = 0.8;  // where lines are torn or missing, of these the length tells

std::uint64_t runs_in(const Lengths& lengths) {
  std::uint64_t runs = 0;
  for (const auto& [length, times] : lengths) runs += times;
  return runs;
}

std::uint64_t divisor_of(const Lengths& lengths, std::uint64_t divisor = 0) {
  for (const auto& [length, times] : lengths) divisor = std::gcd(divisor, length);
  return divisor;
}

/// The shortest of the most frequent ones.
std::uint64_t usual_of(const Lengths& lengths) {
  const auto by_times = [](const auto& a, const auto& b) { return a.second < b.second; };
  return std::max_element(lengths.begin(), lengths.end(), by_times)->first;
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
  if (!equal) {
    add(runs_, run_);
    returns_ += adjacent_ && before_ == overflow ? 1 : 0;
    before_ = last_;
  }
  if (!equal || !adjacent_) end_burst();
  ++run_;
  ++burst_;
  last_ = overflow;
  adjacent_ = true;
}

void RankRuns::end_burst() {
  if (!last_ || burst_ == 0) return;
  const Scales scales{last_->attempted.value_or(-1), last_->next.value_or(-1)};
  if (bursts_.size() < kMostScales || bursts_.contains(scales)) ++bursts_[scales][burst_];
  burst_ = 0;
}

/// The usual length of each message: at its minimum one process prints one message again and again.
RankRuns::Lengths RankRuns::usual_lengths() const {
  Lengths usual;
  for (const auto& [scales, lengths] : bursts_) ++usual[usual_of(lengths)];
  return usual;
}

/// The length of most messages; 1 where too few stand in multiples of it.
std::uint64_t RankRuns::torn_length() const {
  const Lengths each = usual_lengths();
  const std::uint64_t usual = usual_of(each);
  double messages = 0, in_multiples = 0;
  for (const auto& [scales, lengths] : bursts_) {
    for (const auto& [length, times] : lengths) {
      const auto all = static_cast<double>(length) * static_cast<double>(times);
      messages += all;
      if (length % usual == 0) in_multiples += all;
    }
  }
  const bool many = each.at(usual) >= kMessagesThatTell;
  return many && in_multiples >= kMostMessages * messages ? usual : 1;
}

/// Where most messages are repeated: the longest run, else 1. That of the lowest scale may be as
/// long as it likes.
std::uint64_t RankRuns::longest_run() const {
  std::uint64_t repeated = 0, longest = 1;
  for (const auto& [scales, lengths] : bursts_) {
    repeated += usual_of(lengths) > 1 ? 1 : 0;
    const bool lowest = scales == bursts_.begin()->first && bursts_.size() >= kMessagesThatTell;
    if (!lowest) longest = std::max(longest, lengths.rbegin()->first);
  }
  return 2 * repeated > bursts_.size() ? longest : 1;
}

PrintingRanks RankRuns::found() {
  add(runs_, run_);
  end_burst();
  PrintingRanks ranks;
  if (bursts_.empty()) return ranks;
  const bool tell = bursts_.size() >= kMessagesThatTell;
  ranks.ranks = 0;
  for (const auto& [scales, lengths] : bursts_) ranks.ranks = divisor_of(lengths, ranks.ranks);
  // A divisor that is no run's own length may come of lines that were lost.
  const std::uint64_t usual = usual_of(usual_lengths());
  const bool whole = usual == ranks.ranks && (runs_in(runs_) == 1 || usual_of(runs_) == usual);
  ranks.certain = ranks.ranks == 1 || (tell && whole);
  if (ranks.ranks > 1) {
    by_bursts_ = !ranks.certain && whole;
    // Other lines may stand within a run, but each rank prints a message once.
    if (!ranks.certain && !by_bursts_) ranks.ranks = divisor_of(runs_);
    return ranks;
  }
  if (tell) ranks.ranks = torn_length();
  some_torn_ = ranks.ranks > 1;
  if (ranks.ranks == 1) ranks.ranks = longest_run();
  if (ranks.ranks == 1 && runs_in(runs_) >= kRunsApartThatTell) ranks.ranks = divisor_of(runs_);
  ranks.certain = ranks.ranks == 1 && !mixed();
  return ranks;
}

/// Returns true if messages come in an order in which one rank alone hardly prints them: a message,
/// one of another scale, the first one again.
bool RankRuns::mixed() const {
  return returns_ >= kMessagesThatTell && kMostRunsAReturn * returns_ >= runs_in(runs_);
}

}  // namespace halfscope::analyzers::readers::console
