// SPDX-License-Identifier: Apache-2.0
// The numbers of a TensorProto in any of its encodings. Private to readers of event files.
#pragma once

#include <optional>
#include <vector>

#include "halfscope/log/event_file.pb.h"

namespace halfscope::log {

/// Returns the number of a rank 0 tensor of a numeric dtype; empty for all other tensors.
std::optional<double> number_of(const proto::TensorProto& tensor);

/// Returns the elements of a DT_FLOAT or DT_DOUBLE tensor of shape (k, columns), row by row; empty
/// for another type or shape, too many values, or none. As in TensorFlow, the last value is
/// repeated for missing ones.
std::optional<std::vector<double>> rows_of(const proto::TensorProto& tensor, std::size_t columns);

}  // namespace halfscope::log
