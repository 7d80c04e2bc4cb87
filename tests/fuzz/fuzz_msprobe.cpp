// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/statistics/statistics.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(msprobe) {
  using namespace halfscope;
  fuzz::read_files(analyzers::readers::statistics::is_msprobe,
                   analyzers::readers::statistics::read_msprobe, bytes);
}
