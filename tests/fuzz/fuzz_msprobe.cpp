// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/statistics/msprobe.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(msprobe) {
  using namespace halfscope;
  fuzz::read_files(readers::is_msprobe, readers::read_msprobe, bytes);
}
