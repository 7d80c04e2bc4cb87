// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/metrics/metrics.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(metrics_csv) {
  using namespace halfscope;
  fuzz::read_files(analyzers::readers::metrics::is_metrics_csv,
                   analyzers::readers::metrics::read_metrics_csv, bytes);
}
