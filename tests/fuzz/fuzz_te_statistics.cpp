// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/statistics/statistics.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(te_statistics) {
  using namespace halfscope;
  fuzz::read_files(analyzers::readers::statistics::is_te_statistics,
                   analyzers::readers::statistics::read_te_statistics, bytes);
}
