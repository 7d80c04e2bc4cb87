// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/metrics/metrics.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(deepspeed_csv) {
  using namespace halfscope;
  fuzz::read_files(analyzers::readers::metrics::is_deepspeed_csv,
                   analyzers::readers::metrics::read_deepspeed_csv, bytes);
}
