// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/metrics/metrics.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(mlflow) {
  using namespace halfscope;
  fuzz::read_files(analyzers::readers::metrics::is_mlflow, analyzers::readers::metrics::read_mlflow,
                   bytes);
}
