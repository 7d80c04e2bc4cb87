// SPDX-License-Identifier: Apache-2.0
// Sums in a format through binary32: an addition in binary32, then one rounding to the format. The
// result is the same as with a single rounding (docs/numerics/emulator.md, double rounding,
// Figueroa's theorem), because the format has p <= 11 bits, so 24 >= 2 p + 2. Sums below binary32's
// normal numbers are exact there, since both operands are multiples of its smallest step. A sum
// that overflows binary32 also overflows the format.
#include "halfscope/reduction/reduce.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "halfscope/array/array.hpp"
#include "halfscope/array/environment.hpp"
#include "halfscope/device/arena.hpp"
#include "halfscope/reduction/block.hpp"
#include "halfscope/reduction/check.hpp"

namespace halfscope::reduction {
namespace {

using Addends = std::span<const std::span<const float>>;
using Values = std::vector<float>;  // one value for each element of a block

/// Returns the values of an addend, one for each element; valid until the next call.
using AddendOf = std::function<const float*(std::size_t i)>;

struct Job {
  Format format;
  std::size_t elements, addends;
  const AddendOf& addend;
  Order order;
  std::span<float> results;
  UlpRule rule;
  std::size_t offset;  ///< index of the first element in its tensor
  Ring ring;
};

/// A stack of values whose entries keep their memory when they are popped.
class Stack {
 public:
  Values& push() {
    if (depth_ == values_.size()) values_.emplace_back(kBlock);
    return values_[depth_++];
  }
  void clear() { depth_ = 0; }
  void pop() { --depth_; }
  Values& top() { return values_[depth_ - 1]; }
  Values& below() { return values_[depth_ - 2]; }

 private:
  std::vector<Values> values_;
  std::size_t depth_ = 0;
};

/// A block of sums, reused for all blocks of a thread's range.
class Block {
 public:
  explicit Block(const Job& job) : job_(job), state_(std::make_unique<BlockState>()) {}

  BlockFacts reduce(std::size_t first, std::size_t n) {
    first_ = first;
    n_ = n;
    padded_ = (n + kPad - 1) / kPad * kPad;
    *state_ = {};
    stack_.clear();
    visit(
        job_.order, job_.addends, [&](std::size_t i) { leaf(i); }, [&] { add(); });
    const Values& sums = stack_.top();
    if (!job_.results.empty()) std::copy_n(sums.begin(), n, job_.results.subspan(first).begin());
    BlockFacts facts = finish(sums.data(), padded_, job_.rule, *state_);
    facts.elements -= padded_ - n;
    return facts;
  }

 private:
  void leaf(std::size_t i) {
    const float* const given = read(i);
    Values& x = stack_.push();
    std::copy_n(given, padded_, x.begin());
    round(x);
    take_addends(given, x.data(), padded_, *state_);
  }

  void add() {
    Values &a = stack_.below(), &b = stack_.top();
    add_values(a.data(), b.data(), sum_.data(), padded_);
    round(sum_);
    count_additions(a.data(), b.data(), sum_.data(), padded_, *state_);
    std::swap(a, sum_);
    stack_.pop();
  }

  void round(Values& x) const {
    if (job_.format == kBinary32) return;
    quantise(job_.format, std::span(x).first(padded_), {.threads = 1});
  }

  /// Returns the i-th addend of every element: the rank's own memory if all elements have it from
  /// the same rank and no padding is needed.
  const float* read(std::size_t i) {
    const Ring& ring = job_.ring;
    const bool turns = job_.order == Order::ring;
    for (std::size_t from = first_, end = first_ + n_; from < end;) {
      const std::size_t place = job_.offset + from;
      const std::size_t to = turns ? std::min(end, ring.end(place) - job_.offset) : end;
      const std::size_t rank = ((turns ? ring.start(place) : 0) + i) % job_.addends;
      const float* const values = job_.addend(rank) + from;
      if (to - from == padded_) return values;
      std::copy_n(values, to - from, given_.data() + (from - first_));
      from = to;
    }
    std::fill(given_.data() + n_, given_.data() + padded_, 0.0f);
    return given_.data();
  }

  const Job& job_;
  std::unique_ptr<BlockState> state_;
  Stack stack_;
  Values given_ = Values(kBlock), sum_ = Values(kBlock);
  std::size_t first_ = 0, n_ = 0, padded_ = 0;
};

void add_block(Facts& facts, const BlockFacts& block, std::size_t n, std::size_t addends) {
  facts.elements += block.elements;
  facts.nonfinite += n - block.elements;
  facts.flushed += block.flushed;
  facts.additions += block.elements * (addends - 1);
  facts.lost += block.lost;
  facts.overflow += block.overflow;
  facts.add(block.errors);
}

/// Sums the blocks [begin, end).
Facts reduce_blocks(const Job& job, std::size_t begin, std::size_t end) {
  const FloatEnvironment environment(RoundingControl::nearest);
  Facts facts;
  Block block(job);
  for (std::size_t b = begin; b < end; ++b) {
    const std::size_t first = b * kBlock, n = std::min(kBlock, job.elements - first);
    add_block(facts, block.reduce(first, n), n, job.addends);
  }
  return facts;
}

void check(Format f, Addends addends, const Options& options, std::span<float> results) {
  check_sum(f, addends.size());
  const std::size_t n = addends.front().size();
  for (const std::span<const float>& rank : addends) {
    if (rank.size() == n) continue;
    fail("addends of " + std::to_string(n) + " and " + std::to_string(rank.size()) + " elements");
  }
  if (options.of != 0 && options.first + n > options.of) {
    fail("elements from " + std::to_string(options.first) + " on, " + std::to_string(n) + " of " +
         std::to_string(options.of));
  }
  if (results.empty() || results.size() == n) return;
  fail("results of " + std::to_string(results.size()) + " elements for " + std::to_string(n));
}

}  // namespace

void fail(const std::string& what) { throw std::invalid_argument("halfscope::reduction: " + what); }

void check_sum(Format f, std::size_t addends) {
  if (!can_accumulate(f)) fail("sums need binary32, binary16, bfloat16, tf32 or e5m2");
  if (addends == 0) fail("there are no addends");
}

bool can_accumulate(Format f) {
  return f == kBinary32 || (f.has_infinity() && f.precision <= 11 && f.emax <= kBinary32.emax);
}

Facts reduce(Format f, std::size_t elements, std::size_t addends, const AddendsFrom& from,
             const Options& options) {
  check_sum(f, addends);
  const AddendOf addend = [&](std::size_t i) { return from(i).data(); };
  const Ring ring = {options.of == 0 ? elements : options.of, addends};
  const Job job = {f,  elements,    addends,       addend, options.order,
                   {}, ulp_rule(f), options.first, ring};
  return reduce_blocks(job, 0, (elements + kBlock - 1) / kBlock);
}

Facts reduce(Format f, Addends addends, const Options& options, std::span<float> results) {
  check(f, addends, options, results);
  const std::size_t n = addends.front().size(), count = addends.size();
  const AddendOf addend = [&](std::size_t i) { return addends[i].data(); };
  const Ring ring = {options.of == 0 ? n : options.of, count};
  const Job job = {f, n, count, addend, options.order, results, ulp_rule(f), options.first, ring};
  const std::size_t blocks = (n + kBlock - 1) / kBlock;
  if (options.threads == 1 || blocks <= 1) return reduce_blocks(job, 0, blocks);
  using Range = tbb::blocked_range<std::size_t>;
  return in_arena(options.threads, [&] {
    return tbb::parallel_reduce(
        Range(0, blocks, 4), Facts{},
        [&](const Range& range, Facts facts) {
          return facts += reduce_blocks(job, range.begin(), range.end());
        },
        [](Facts a, const Facts& b) { return a += b; });
  });
}

}  // namespace halfscope::reduction
