// SPDX-License-Identifier: Apache-2.0
// Any bytes as an NPZ file. Those that begin with 'Z' are the archive; others are packed into one:
// a byte (1: deflated, 2: sizes in ZIP64 fields), its members as name and data.
#include "analyzers/readers/tensors/open.hpp"
#include "analyzers/readers/tensors/zip_archive.hpp"
#include "archive.hpp"
#include "tensors.hpp"

using namespace halfscope;

namespace {

std::string archive_of(fuzz::Cursor input) {
  std::vector<test::ZipMember> members;
  const std::uint64_t packing = input.number(1);
  while (!input.done() && members.size() < 4) {
    const std::string name(input.text(1 + input.number(1) % 32));
    members.push_back(fuzz::zip_member(name, input.part(), (packing & 1) != 0));
    members.back().zip64 = (packing & 2) != 0;
  }
  return test::zip_of(members);
}

}  // namespace

HALFSCOPE_FUZZ_TARGET(npz) {
  const bool raw = !bytes.empty() && bytes[0] == 'Z';
  const std::string archive =
      raw ? std::string(fuzz::Cursor(bytes.subspan(1)).rest()) : archive_of(fuzz::Cursor(bytes));
  const fuzz::MemoryFile file(archive);
  fuzz::read_or_refuse(file.path(), [&] {
    using namespace analyzers::readers::tensors;
    const auto read = open_npz(std::make_unique<ZipArchive>(file.path(), "an NPZ file"));
    fuzz::contents_of(*read);
    fuzz::require_by_name(*read);
  });
}
