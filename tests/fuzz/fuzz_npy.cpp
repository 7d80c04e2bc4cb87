// SPDX-License-Identifier: Apache-2.0
// Any bytes as an NPY file.
#include "analyzers/readers/tensors/open.hpp"
#include "tensors.hpp"

using namespace halfscope;

HALFSCOPE_FUZZ_TARGET(npy) {
  const fuzz::MemoryFile file(fuzz::Cursor(bytes).rest());
  fuzz::read_or_refuse(file.path(), [&] {
    const auto read = analyzers::readers::tensors::open_npy(file.path());
    const std::size_t data = fuzz::contents_of(*read).bytes;
    fuzz::require_by_name(*read);
    const std::size_t width = bytes[6] == 1 ? 2 : 4;  // of the header's length, by the version
    const std::uint64_t header = fuzz::Cursor(bytes.subspan(8)).number(width);
    fuzz::require(8 + width + header + data <= bytes.size());
  });
}
