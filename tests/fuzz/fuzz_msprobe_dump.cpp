// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/statistics/statistics.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(msprobe_dump) {
  using namespace halfscope;
  fuzz::read_files(analyzers::readers::statistics::is_msprobe_dump,
                   analyzers::readers::statistics::read_msprobe_dump, bytes);
}
