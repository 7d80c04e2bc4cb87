// SPDX-License-Identifier: Apache-2.0
// Converts counts of whole tensors to messages of record.proto, and back.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "analyzers/frames/value_total.hpp"
#include "analyzers/readers/record/record.pb.h"
#include "analyzers/readers/record/record_items.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::record {

namespace proto = halfscope::record;
using frames::CountedRows;
using frames::CountedSums;
using frames::CountedUpdates;
using Table = proto::Updates::Table;

namespace {

void put(const UpdateOutcomes& from, proto::Outcomes& to) {
  to.set_underflow(from.underflow);
  to.set_swamped(from.swamped);
  to.set_applied(from.applied);
  to.set_exact(from.exact);
  to.set_overflow(from.overflow);
}

UpdateOutcomes outcomes_of(const proto::Outcomes& from) {
  return {from.underflow(), from.swamped(), from.applied(), from.exact(), from.overflow()};
}

void put(const UpdateTable& from, Table& to) {
  to.set_pairs(from.counts.pairs);
  to.set_zero(from.counts.zero);
  to.set_nonfinite(from.counts.nonfinite);
  put(from.counts.half, *to.mutable_half());
  put(from.counts.fused, *to.mutable_fused());
  to.set_rule_2048(from.counts.rule_2048);
  for (const auto& [binades, cell] : from.cells) {
    to.add_cells(binades.first);
    to.add_cells(binades.second);
    to.add_cell_counts(cell.count);
    to.add_cell_lost(cell.lost);
  }
  for (const auto& [ratio, cell] : from.ratios) {
    to.add_ratios(ratio);
    to.add_ratio_counts(cell.count);
    to.add_ratio_lost(cell.lost);
  }
  for (const auto& [error, count] : from.errors) {
    to.add_errors(error);
    to.add_error_counts(count);
  }
}

void require_lengths(const Table& from) {
  const bool fit = from.cells_size() == 2 * from.cell_counts_size() &&
                   from.cell_lost_size() == from.cell_counts_size() &&
                   from.ratios_size() == from.ratio_counts_size() &&
                   from.ratio_lost_size() == from.ratio_counts_size() &&
                   from.errors_size() == from.error_counts_size();
  if (!fit) throw std::invalid_argument("a table of updates whose lists differ in length");
}

using Wide = unsigned __int128;  // cannot overflow in sums of a list's counts

Wide sum_of(const UpdateOutcomes& o) {
  return Wide(o.underflow) + o.swamped + o.applied + o.exact + o.overflow;
}

Wide sum_of(const google::protobuf::RepeatedField<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), Wide{0});
}

/// Throws std::invalid_argument unless each kind of count adds up to at most the number of updates.
void require_counts(const Table& from) {
  const Wide pairs = from.pairs(), others = Wide(from.zero()) + from.nonfinite();
  const Wide most = std::max({sum_of(outcomes_of(from.half())), sum_of(outcomes_of(from.fused())),
                              Wide(from.rule_2048()), sum_of(from.cell_counts()),
                              sum_of(from.cell_lost()), sum_of(from.ratio_counts()),
                              sum_of(from.ratio_lost()), sum_of(from.error_counts())});
  if (pairs > frames::kMostValues || others + most > pairs) {
    throw std::invalid_argument(
        "a table of updates has more updates than pairs, or more than 2^62 pairs");
  }
}

UpdateTable table_of(const Table& from) {
  require_lengths(from);
  require_counts(from);
  UpdateTable table;
  table.counts = {from.pairs(),
                  from.zero(),
                  from.nonfinite(),
                  outcomes_of(from.half()),
                  outcomes_of(from.fused()),
                  from.rule_2048()};
  for (int i = 0; i < from.cell_counts_size(); ++i) {
    table.cells[{from.cells(2 * i), from.cells(2 * i + 1)}] = {from.cell_counts(i),
                                                               from.cell_lost(i)};
  }
  for (int i = 0; i < from.ratios_size(); ++i) {
    table.ratios[from.ratios(i)] = {from.ratio_counts(i), from.ratio_lost(i)};
  }
  for (int i = 0; i < from.errors_size(); ++i) table.errors[from.errors(i)] = from.error_counts(i);
  return table;
}

CountedSums sums_of(const proto::Sums& from) {
  if (!(from.scale() > 0) || !std::isfinite(from.scale())) {
    throw std::invalid_argument("sums at an invalid scale");
  }
  CountedSums counted{from.name(), step_in(from.step()), from.scale(), from.elements(),
                      MagnitudeSums({from.cuts().begin(), from.cuts().end()})};
  for (const proto::Sums::Part& part : from.parts()) {
    MagnitudeSums::Part one{part.exponent(), part.segment(), {}, {}};
    if (part.magnitudes_size() != 2 || part.squares_size() != 3) {
      throw std::invalid_argument("sums of other width than 2 and 3 limbs");
    }
    std::ranges::copy(part.magnitudes(), one.magnitudes.begin());
    std::ranges::copy(part.squares(), one.squares.begin());
    counted.sums.add(one);
  }
  return counted;
}

CountedUpdates updates_of(const proto::Updates& from) {
  CountedUpdates counted{from.weight(), step_in(from.step()), from.source(), {}};
  for (const Table& table : from.tables()) {
    counted.by_format.emplace_back(table.format(), table_of(table));
  }
  return counted;
}

void put(const CountedRows::Longest& from, proto::Rows::Longest& to) {
  to.set_norm(from.norm);
  to.set_width(from.width);
  to.set_whole(from.whole);
}

CountedRows::Longest longest_of(const proto::Rows::Longest& from) {
  if (!(from.norm() >= 0)) throw std::invalid_argument("rows of an invalid norm");
  return {from.norm(), from.width(), from.whole()};
}

CountedRows rows_of(const proto::Rows& from) {
  CountedRows counted{from.name(), step_in(from.step()), longest_of(from.features_last()), {}};
  if (from.has_channels_second()) counted.channels_second = longest_of(from.channels_second());
  return counted;
}

}  // namespace

proto::Item item_of(const CountedSums& counted) {
  proto::Item item;
  proto::Sums& to = *item.mutable_sums();
  to.set_name(counted.name);
  to.set_step(counted.step);
  to.set_scale(counted.scale);
  to.set_elements(counted.elements);
  to.mutable_cuts()->Assign(counted.sums.cuts().begin(), counted.sums.cuts().end());
  for (const MagnitudeSums::Part& part : counted.sums.parts()) {
    proto::Sums::Part& one = *to.add_parts();
    one.set_exponent(part.exponent);
    one.set_segment(part.segment);
    one.mutable_magnitudes()->Assign(part.magnitudes.begin(), part.magnitudes.end());
    one.mutable_squares()->Assign(part.squares.begin(), part.squares.end());
  }
  return item;
}

proto::Item item_of(const CountedUpdates& counted) {
  proto::Item item;
  proto::Updates& to = *item.mutable_updates();
  to.set_weight(counted.weight);
  to.set_step(counted.step);
  to.set_source(counted.source);
  for (const auto& [format, table] : counted.by_format) {
    Table& one = *to.add_tables();
    one.set_format(format);
    put(table, one);
  }
  return item;
}

proto::Item item_of(const CountedRows& counted) {
  proto::Item item;
  proto::Rows& to = *item.mutable_rows();
  to.set_name(counted.name);
  to.set_step(counted.step);
  put(counted.features_last, *to.mutable_features_last());
  if (counted.channels_second) put(*counted.channels_second, *to.mutable_channels_second());
  return item;
}

void tell_counts(const proto::Item& item, const frames::Selection& selection,
                 const std::string& where, const frames::WholeCountsVisitor& visit) {
  const auto selected = [&](const std::string& name, std::int64_t step) {
    return frames::in_steps(selection, step) && frames::selects(selection, name);
  };
  try {
    if (visit.sums && item.has_sums() && selected(item.sums().name(), item.sums().step())) {
      visit.sums(sums_of(item.sums()));
    }
    if (visit.updates && item.has_updates() &&
        selected(item.updates().weight(), item.updates().step())) {
      visit.updates(updates_of(item.updates()));
    }
    if (visit.rows && item.has_rows() && selected(item.rows().name(), item.rows().step())) {
      visit.rows(rows_of(item.rows()));
    }
  } catch (const std::invalid_argument& error) {
    throw log::BadInput(where + ": " + error.what() + "; count it again");
  }
}

}  // namespace halfscope::analyzers::readers::record
