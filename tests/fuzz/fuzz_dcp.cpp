// SPDX-License-Identifier: Apache-2.0
// A checkpoint of torch.distributed.checkpoint: the first part is its pickle ".metadata", the rest
// the file "__0_0.distcp".
#include "analyzers/readers/tensors/open.hpp"
#include "tensors.hpp"

using namespace halfscope;

HALFSCOPE_FUZZ_TARGET(dcp) {
  fuzz::Cursor input(bytes);
  const fuzz::Folder folder;
  folder.write(".metadata", input.part());
  folder.write("__0_0.distcp", input.rest());
  const auto metadata = folder.path() / ".metadata";
  fuzz::read_or_refuse(metadata, [&] {
    const auto read = analyzers::readers::tensors::open_tensor_file(metadata);
    fuzz::contents_of(*read);
    fuzz::require_by_name(*read);
  });
}
