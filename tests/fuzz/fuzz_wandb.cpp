// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/wandb/wandb.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(wandb) {
  using namespace halfscope;
  fuzz::read_files(analyzers::readers::wandb::is_wandb, analyzers::readers::wandb::read_wandb,
                   bytes);
}
