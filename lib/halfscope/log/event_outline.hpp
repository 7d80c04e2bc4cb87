// SPDX-License-Identifier: Apache-2.0
// What an event's message holds, without its data: which values, and where they lie. A tenth of the
// time that parsing takes, where most values are not wanted.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace halfscope::log {

/// One Summary.Value. The views lie in the message.
struct ValueOutline {
  enum class Kind : std::uint8_t { other, scalar, histogram, tensor };

  std::string_view tag;
  std::string_view
      plugin;  ///< SummaryMetadata.plugin_data.plugin_name; of a tag's first value alone
  Kind kind = Kind::other;
  float scalar = 0;       ///< simple_value
  std::string_view body;  ///< the HistogramProto or TensorProto, not looked into
};

struct EventOutline {
  std::int64_t step = 0;
  bool starts = false;  ///< a SessionLog of status START: the run goes on from this step
  std::vector<ValueOutline> values;  ///< those that hold a scalar, histogram, tensor or plugin name

  /// Reads a message; what the outline held is replaced. False where it is no Event: its fields
  /// cannot be told apart, or none is one of an Event's.
  bool read(std::string_view message);
};

}  // namespace halfscope::log
