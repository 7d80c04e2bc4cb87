// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "analyzers/readers/record/record.pb.h"
#include "analyzers/readers/record/record_items.hpp"
#include "catch.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::record::test_whole_items {
namespace {

using Table = halfscope::record::Updates::Table;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

/// Ten updates, of which 4 are lost in one cell.
halfscope::record::Item updates_item() {
  halfscope::record::Item item;
  halfscope::record::Updates& updates = *item.mutable_updates();
  updates.set_weight("weight/w");
  Table& table = *updates.add_tables();
  table.set_format("binary16");
  table.set_pairs(12);
  table.set_zero(2);
  table.mutable_half()->set_swamped(4);
  table.mutable_half()->set_exact(6);
  table.add_cells(0);
  table.add_cells(-12);
  table.add_cell_counts(10);
  table.add_cell_lost(4);
  return item;
}

std::uint64_t pairs_in(const halfscope::record::Item& item) {
  std::uint64_t pairs = 0;
  frames::WholeCountsVisitor visit;
  visit.updates = [&](const frames::CountedUpdates& counted) {
    pairs += counted.by_format.front().second.counts.pairs;
  };
  tell_counts(item, {}, "a.hst: part", visit);
  return pairs;
}

TEST_CASE("A record with more updates than pairs is refused, also where sums would wrap",
          "[table]") {
  CHECK(pairs_in(updates_item()) == 12);
  using Change = void (*)(Table & table);
  const Change changes[] = {
      [](Table& t) { t.set_pairs(kMost); },
      [](Table& t) { t.set_pairs(11); },
      [](Table& t) { t.set_zero(kMost); },
      [](Table& t) { t.mutable_half()->set_underflow(kMost - 9); },
      [](Table& t) { t.mutable_fused()->set_applied(11); },
      [](Table& t) { t.set_rule_2048(11); },
      [](Table& t) { t.set_cell_counts(0, kMost); },
      [](Table& t) { t.set_cell_lost(0, 11); },
  };
  for (const Change change : changes) {
    halfscope::record::Item item = updates_item();
    change(*item.mutable_updates()->mutable_tables(0));
    CHECK_THROWS_AS(pairs_in(item), log::BadInput);
  }
}

}  // namespace
}  // namespace halfscope::analyzers::readers::record::test_whole_items
