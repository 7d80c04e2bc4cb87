// SPDX-License-Identifier: Apache-2.0
// What a run log's events hold, both ways: a step's scalars and a tensor record as TensorBoard
// values. The schema is docs/run-log.md. Private to the log library.
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

/// What TensorBoard calls the data of ours.
inline constexpr std::string_view kPlugin = "halfscope";

// Tags: binades/NAME and statistics/NAME beside the histogram NAME; exact/TAG beside the scalar
// TAG.
inline constexpr std::string_view kBinades = "binades/";
inline constexpr std::string_view kStatistics = "statistics/";
inline constexpr std::string_view kExact = "exact/";

bool is_utf8(std::string_view text);
/// Throws BadInput unless `name` is text and not empty. what: "tensor" or "scalar".
void require_name(std::string_view name, std::string_view what, std::string_view where);
/// Says that a tensor value is ours. TensorBoard wants it with the first value of a tag in a file.
void describe(proto::Summary::Value& value);

/// Throw BadInput for a name or tag that cannot be one. `where` begins the message.
proto::Summary scalar_values(const StepScalars& scalars, std::string_view where);
proto::Summary record_values(const TensorRecord& record, std::string_view where);

/// An ordinary histogram: one bucket a binade and sign, zeros in one around zero.
proto::HistogramProto histogram(const BinadeTable& table, const Moments& moments);

/// Calls `visit` with tag and value of every scalar of a summary, in order.
void for_each_scalar(const proto::Summary& summary,
                     const std::function<void(const std::string& tag, double value)>& visit);
/// Sets the scalar of a tag.
void set_scalar(StepScalars& scalars, const std::string& tag, double value);

/// The tensor records of one event, which must outlive it. Tags are looked up, not searched: one
/// event may hold thousands.
class RecordEvent {
 public:
  explicit RecordEvent(const proto::Event& event);

  const std::vector<std::string>& names() const { return names_; }
  /// The record of one of these names. Throws std::invalid_argument saying what is wrong with it.
  TensorRecord read(const std::string& name) const;

 private:
  const proto::TensorProto& tensor(const std::string& tag) const;

  const proto::Event& event_;
  std::unordered_map<std::string_view, const proto::TensorProto*> tensors_;  ///< by tag
  std::vector<std::string> names_;
};

}  // namespace halfscope::log
