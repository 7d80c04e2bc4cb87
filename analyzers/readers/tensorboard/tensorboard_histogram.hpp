// SPDX-License-Identifier: Apache-2.0
// The histograms of TensorBoard event files, as each of their writers means them.
#pragma once

#include <optional>

#include "analyzers/readers/common/histogram.hpp"
#include "halfscope/log/event_file.pb.h"

namespace halfscope::analyzers::readers::tensorboard {

/// A legacy histogram: of torch, tensorboardX, TensorFlow, or anybody's add_histogram_raw. Throws
/// std::invalid_argument saying what is wrong, as table_of.
BoundedTable table_of(const log::proto::HistogramProto& histogram);

/// The same as Halfscope's run logs have it: buckets of negative values are half-open from zero
/// outwards, the one around zero holds zeros alone, and min and max are bounds (docs/run-log.md).
BoundedTable table_of_run_log(const log::proto::HistogramProto& histogram);

/// A tensor of TensorFlow 2's summaries: rows of left edge, right edge and count.
BoundedTable table_of(const log::proto::TensorProto& tensor);

}  // namespace halfscope::analyzers::readers::tensorboard
