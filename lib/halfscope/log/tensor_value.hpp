// SPDX-License-Identifier: Apache-2.0
// The numbers of a TensorProto, however it was written. Private to those who read event files.
#pragma once

#include <optional>
#include <vector>

#include "halfscope/log/event_file.pb.h"

namespace halfscope::log {

/// The number of a rank 0 tensor of a numeric dtype; empty for all others.
std::optional<double> number_of(const proto::TensorProto& tensor);

/// The elements of a DT_FLOAT or DT_DOUBLE tensor of shape (k, columns), row after row; empty where
/// it is no such tensor, or does not hold what its shape says. As TensorFlow has it, the last
/// number stands for all that are missing.
std::optional<std::vector<double>> rows_of(const proto::TensorProto& tensor, std::size_t columns);

}  // namespace halfscope::log
