// SPDX-License-Identifier: Apache-2.0
// What a reader tells of a part of a log, as messages of record.proto, and back.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::record {
class Item;
}

namespace halfscope::analyzers::readers::record {

/// The visitor of a reader, which passes on all that it is told, in order.
frames::Visitor items_of(const std::function<void(const halfscope::record::Item&)>& take);

/// What a part's items do not say.
struct PartNames {
  std::optional<log::Manifest> manifest;
  std::string log;    ///< as it was called where it was counted
  std::string path;   ///< as it is called now
  std::string where;  ///< begins messages
};

/// Tells a visitor what items say, as far as it is selected.
class ItemTeller {
 public:
  /// Refers to all of these.
  ItemTeller(const frames::Selection& selection, const frames::Visitor& visit,
             const PartNames& names)
      : selection_(selection), visit_(visit), names_(names) {}
  /// Throws log::BadInput where it is an item that nobody writes.
  void tell(const halfscope::record::Item& item);

 private:
  void tell_run(std::string name);
  void tell_quantised(const halfscope::record::Item& item);

  const frames::Selection& selection_;
  const frames::Visitor& visit_;
  const PartNames& names_;
  std::vector<std::int64_t> log_steps_;  ///< selected ones
};

}  // namespace halfscope::analyzers::readers::record
