// SPDX-License-Identifier: Apache-2.0
// Converts what a reader passes to its visitor into messages of record.proto, and back.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/frames/whole_counts.hpp"

namespace halfscope::record {
class Frame;
class Item;
class LogSteps;
class Peak;
class Quantised;
class Scalars;
class Skipped;
}  // namespace halfscope::record

namespace halfscope::analyzers::readers::record {

/// Returns a visitor that converts all that a reader passes to it to items, for `take`, in order.
frames::Visitor items_of(const std::function<void(const halfscope::record::Item&)>& take);

/// Returns `step`. Throws std::invalid_argument if its magnitude is above common::kLargestStep.
std::int64_t step_in(std::int64_t step);

/// Convert counts of a whole tensor to an item.
halfscope::record::Item item_of(const frames::CountedSums& counted);
halfscope::record::Item item_of(const frames::CountedUpdates& counted);
halfscope::record::Item item_of(const frames::CountedRows& counted);
/// Passes the counts of a whole tensor in an item to `visit`, if they are selected. Does nothing
/// for other items. `where` begins error messages. Throws log::BadInput if an item is not valid.
void tell_counts(const halfscope::record::Item& item, const frames::Selection& selection,
                 const std::string& where, const frames::WholeCountsVisitor& visit);

/// Reads a part's items back: calls a visitor as the log's own reader would, for what is selected.
class ItemTeller {
 public:
  /// Keeps references to all arguments. `where` begins error messages. `manifest` is the part's.
  ItemTeller(const frames::Selection& selection, const frames::Visitor& visit,
             const std::optional<log::Manifest>& manifest, const std::string& where)
      : selection_(selection), visit_(visit), manifest_(manifest), where_(where) {}
  /// Passes one item to the visitor. Ignores items of whole tensors and of later schema versions.
  /// Throws log::BadInput if the item is not valid.
  void tell(const halfscope::record::Item& item);

 private:
  void tell_any(const halfscope::record::Item& item);
  void tell_frame(const halfscope::record::Frame& from);
  void tell_peak(const halfscope::record::Peak& from);
  void tell_scalars(const halfscope::record::Scalars& from);
  void tell_skipped(const halfscope::record::Skipped& from);
  void tell_log_steps(const halfscope::record::LogSteps& from);
  void tell_quantised(const halfscope::record::Quantised& from);

  const frames::Selection& selection_;
  const frames::Visitor& visit_;
  const std::optional<log::Manifest>& manifest_;
  const std::string& where_;
  /// Steps of the last LogSteps item, ascending: all, and those that are selected.
  std::vector<std::int64_t> log_steps_all_, log_steps_;
};

}  // namespace halfscope::analyzers::readers::record
