// SPDX-License-Identifier: Apache-2.0
// What a reader tells of a part of a log, as messages of record.proto, and back.
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

/// The visitor of a reader, which passes on all that it is told, in order.
frames::Visitor items_of(const std::function<void(const halfscope::record::Item&)>& take);

/// The step, unless no log has such a one. Throws std::invalid_argument.
std::int64_t step_in(std::int64_t step);

/// Counts of whole tensors, as items.
halfscope::record::Item item_of(const frames::CountedSums& counted);
halfscope::record::Item item_of(const frames::CountedUpdates& counted);
halfscope::record::Item item_of(const frames::CountedRows& counted);
/// And back: nothing of other items. Throws log::BadInput as ItemTeller.
void tell_counts(const halfscope::record::Item& item, const frames::Selection& selection,
                 const std::string& where, const frames::WholeCountsVisitor& visit);

/// Tells a visitor what items say, as far as it is selected.
class ItemTeller {
 public:
  /// Refers to all of these. `where` begins messages.
  ItemTeller(const frames::Selection& selection, const frames::Visitor& visit,
             const std::optional<log::Manifest>& manifest, const std::string& where)
      : selection_(selection), visit_(visit), manifest_(manifest), where_(where) {}
  /// Throws log::BadInput where it is an item that nobody writes.
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
  std::vector<std::int64_t> log_steps_all_, log_steps_;  ///< and those of them that are selected
};

}  // namespace halfscope::analyzers::readers::record
