// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/metrics/metrics.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(trainer_state) {
  using namespace halfscope;
  fuzz::read_files(analyzers::readers::metrics::is_trainer_state,
                   analyzers::readers::metrics::read_trainer_state, bytes);
}
