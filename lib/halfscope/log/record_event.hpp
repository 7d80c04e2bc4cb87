// SPDX-License-Identifier: Apache-2.0
// Conversion between a run log's contents and its events: a step's scalars and a tensor record as
// TensorBoard values. Schema: docs/run-log.md. Private to the log library.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "halfscope/log/event_file.pb.h"
#include "halfscope/log/run_log.hpp"

namespace halfscope::log {

/// TensorBoard's plugin name for Halfscope's data.
inline constexpr std::string_view kPlugin = "halfscope";

// Tags: binades/NAME and statistics/NAME belong to histogram NAME, exact/TAG to scalar TAG.
inline constexpr std::string_view kBinades = "binades/";
inline constexpr std::string_view kStatistics = "statistics/";
inline constexpr std::string_view kExact = "exact/";

bool is_utf8(std::string_view text);
/// Throws BadInput if `name` is empty or not UTF-8. `what`: "tensor" or "scalar", for the message.
void require_name(std::string_view name, std::string_view what, std::string_view where);
/// Marks a tensor value as Halfscope's. TensorBoard needs this on a tag's first value in a file.
void describe(proto::Summary::Value& value);

/// Both throw BadInput for an invalid name or tag; the message begins with `where`.
proto::Summary scalar_values(const StepScalars& scalars, std::string_view where);
proto::Summary record_values(const TensorRecord& record, std::string_view where);

/// Returns a TensorBoard histogram: a bucket per binade and sign, and one around zero for zeros.
proto::HistogramProto histogram(const BinadeTable& table, const Moments& moments);

/// Calls `visit` with the tag and the value of every scalar of a summary, in order.
void for_each_scalar(const proto::Summary& summary,
                     const std::function<void(const std::string& tag, double value)>& visit);
/// Sets the scalar with the given tag.
void set_scalar(StepScalars& scalars, const std::string& tag, double value);

/// The tensor records of an event, which must outlive this object. Lookup by tag is by hash, since
/// an event may have thousands of records.
class RecordEvent {
 public:
  explicit RecordEvent(const proto::Event& event);

  const std::vector<std::string>& names() const { return names_; }
  /// Returns the record with a name from names(). Throws std::invalid_argument with the fault.
  TensorRecord read(const std::string& name) const;

 private:
  const proto::TensorProto& tensor(const std::string& tag) const;

  const proto::Event& event_;
  std::unordered_map<std::string_view, const proto::TensorProto*> tensors_;  ///< by tag
  std::vector<std::string> names_;
};

}  // namespace halfscope::log
