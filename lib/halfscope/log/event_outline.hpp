// SPDX-License-Identifier: Apache-2.0
// Outline of an event's message: which values it has and where their data is, without parsing the
// data. Takes a tenth of the time of parsing, for readers that need few of the values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace halfscope::log {

/// A Summary.Value. The views point into the message.
struct ValueOutline {
  enum class Kind : std::uint8_t { other, scalar, histogram, tensor };

  std::string_view tag;
  std::string_view
      plugin;  ///< SummaryMetadata.plugin_data.plugin_name; only a tag's first value has it
  Kind kind = Kind::other;
  float scalar = 0;       ///< simple_value
  std::string_view body;  ///< the unparsed HistogramProto or TensorProto
};

struct EventOutline {
  std::int64_t step = 0;
  bool starts = false;  ///< true for a SessionLog of status START: the run restarts from this step
  std::vector<ValueOutline> values;  ///< values with a scalar, histogram, tensor or plugin name

  /// Replaces the outline with the outline of a message. Returns false if the message is not an
  /// Event: its fields cannot be parsed, or none of them is a field of Event.
  bool read(std::string_view message);
};

}  // namespace halfscope::log
