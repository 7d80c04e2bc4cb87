// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/deepspeed_csv.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(deepspeed_csv) {
  using namespace halfscope;
  fuzz::read_files(analyzers::readers::console::is_deepspeed_csv,
                   analyzers::readers::console::read_deepspeed_csv, bytes);
}
