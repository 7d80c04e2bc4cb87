// SPDX-License-Identifier: Apache-2.0
// The histograms of TensorBoard event files, by the rules of the program that wrote them.
#pragma once

#include <optional>

#include "analyzers/readers/common/histogram.hpp"
#include "halfscope/log/event_file.pb.h"

namespace halfscope::analyzers::readers::tensorboard {

/// The table of a legacy histogram of torch, tensorboardX, TensorFlow or add_histogram_raw. Throws
/// std::invalid_argument with the reason if it is not usable; so do the functions below.
BoundedTable table_of(const log::proto::HistogramProto& histogram);

/// The same for Halfscope's run logs: negative values are in buckets (left, right],
/// the bucket around zero holds only zeros, and min and max are bounds (docs/run-log.md).
BoundedTable table_of_run_log(const log::proto::HistogramProto& histogram);

/// The table of a tensor of TensorFlow 2's summaries: rows of left edge, right edge and count.
BoundedTable table_of(const log::proto::TensorProto& tensor);

}  // namespace halfscope::analyzers::readers::tensorboard
