// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/wandb/wandb.hpp"
#include "log_reader.hpp"

HALFSCOPE_FUZZ_TARGET(wandb) {
  using namespace halfscope;
  fuzz::read_files(readers::is_wandb, readers::read_wandb, bytes);
}
