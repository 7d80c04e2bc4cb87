// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/statistics/statistics.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(paddle) {
  using namespace halfscope;
  fuzz::read_files(analyzers::readers::statistics::is_paddle,
                   analyzers::readers::statistics::read_paddle, bytes);
}
