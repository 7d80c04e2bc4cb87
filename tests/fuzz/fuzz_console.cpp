// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_log.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(console) {
  using namespace halfscope;
  fuzz::read_files(analyzers::readers::console::is_console_log,
                   analyzers::readers::console::read_console_log, bytes);
}
