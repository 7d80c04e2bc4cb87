// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/update_table.hpp"

#include <stdexcept>
#include <string>

#include "halfscope/table/update_pair.hpp"
#include "halfscope/table/update_source.hpp"

namespace halfscope {
namespace {

template <typename Key, typename Value>
void add_map(std::map<Key, Value>& to, const std::map<Key, Value>& from) {
  for (const auto& [key, value] : from) to[key] += value;
}

/// One pair at a time.
template <typename MakeUpdate>
UpdateTable count_pairs(const TensorView& weights, const UpdateOptions& options,
                        const MakeUpdate& make_update) {
  constexpr std::size_t kGrain = std::size_t{1} << 16;
  const Format from = format_of(weights.dtype);
  const auto add_range = [&](UpdateTable& table, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      const std::uint64_t w16 = convert(options.format, from, element(weights, i)).bits;
      add_pair(table, options.format, w16, make_update(i), options.distributions);
    }
  };
  return reduce_pairs<UpdateTable>(weights.count, kGrain, options.threads, add_range);
}

}  // namespace

void require_pairs(const TensorView& weights, const TensorView& other, Format weight_format) {
  require_weight_format(weight_format);
  if (weights.count != other.count) {
    throw std::invalid_argument("updates: " + std::to_string(weights.count) + " weights and " +
                                std::to_string(other.count) + " updates, want as many");
  }
  for (const TensorView* t : {&weights, &other}) {
    if (format_of(t->dtype).width < 16) {
      throw std::invalid_argument("updates: elements of dtype " + std::string(name_of(t->dtype)) +
                                  ", want F16, BF16, F32 or F64");
    }
  }
}

UpdateOutcomes& UpdateOutcomes::operator+=(const UpdateOutcomes& other) {
  underflow += other.underflow;
  swamped += other.swamped;
  applied += other.applied;
  exact += other.exact;
  overflow += other.overflow;
  return *this;
}

UpdateCell& UpdateCell::operator+=(const UpdateCell& other) {
  count += other.count;
  lost += other.lost;
  return *this;
}

UpdateCounts& UpdateCounts::operator+=(const UpdateCounts& other) {
  pairs += other.pairs;
  zero += other.zero;
  nonfinite += other.nonfinite;
  half += other.half;
  fused += other.fused;
  rule_2048 += other.rule_2048;
  return *this;
}

UpdateTable& UpdateTable::operator+=(const UpdateTable& other) {
  counts += other.counts;
  add_map(cells, other.cells);
  add_map(ratios, other.ratios);
  add_map(errors, other.errors);
  return *this;
}

UpdateTable count_updates(const TensorView& weights, const TensorView& updates,
                          const UpdateOptions& options) {
  require_pairs(weights, updates, options.format);
  const Format from = format_of(updates.dtype);
  return count_pairs(weights, options,
                     [&](std::size_t i) { return recorded_update(from, element(updates, i)); });
}

UpdateTable count_sgd_updates(const TensorView& weights, const TensorView& gradients, double lr,
                              double scale, const UpdateOptions& options) {
  require_pairs(weights, gradients, options.format);
  const SgdStep step(lr, scale);
  const Format from = format_of(gradients.dtype);
  return count_pairs(weights, options,
                     [&](std::size_t i) { return step.update(from, element(gradients, i)); });
}

UpdateTable count_differences(const TensorView& before, const TensorView& after,
                              const UpdateOptions& options) {
  require_pairs(before, after, options.format);
  return count_pairs(before, options, [&](std::size_t i) {
    const double difference = to_double(format_of(after.dtype), element(after, i)) -
                              to_double(format_of(before.dtype), element(before, i));
    return recorded_update(kBinary64, detail::bit_cast<std::uint64_t>(difference));
  });
}

}  // namespace halfscope
