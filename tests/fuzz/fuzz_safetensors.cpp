// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file. Views lie inside what was read; what is read is also written.
#include "halfscope/log/safetensors.hpp"
#include "tensors.hpp"
#include "tensors_of.hpp"

using namespace halfscope;

HALFSCOPE_FUZZ_TARGET(safetensors) {
  fuzz::Cursor input(bytes);
  const std::uint64_t header = fuzz::Cursor(bytes).number(8);
  const fuzz::MemoryFile file(input.rest());
  fuzz::read_or_refuse(file.path(), [&] {
    const log::Safetensors read(file.path());
    const fuzz::Contents contents = fuzz::contents_of(read);
    if (!read.parts().empty()) return;  // values are longer than their codes
    // A page that is mapped beyond the end of the file can be read, so it must be counted.
    fuzz::require(8 + header + contents.bytes <= bytes.size());
    fuzz::require_by_name(read);
    const fuzz::Folder folder;
    log::write_safetensors(folder.path() / "copy", test::TensorsOf(read).all(), read.metadata());
    fuzz::require(fuzz::contents_of(log::Safetensors(folder.path() / "copy")) == contents);
  });
}
