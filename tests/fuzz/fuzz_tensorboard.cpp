// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensorboard/tensorboard.hpp"
#include "events.hpp"
#include "log_reader.hpp"

using namespace halfscope;

HALFSCOPE_FUZZ_TARGET(tensorboard) {
  const fuzz::Folder folder;
  folder.write("events.out.tfevents.1", fuzz::event_file(fuzz::Cursor(bytes).rest()));
  fuzz::read_log(analyzers::readers::tensorboard::is_tensorboard,
                 analyzers::readers::tensorboard::read_tensorboard, folder.path());
}
