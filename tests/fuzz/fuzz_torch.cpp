// SPDX-License-Identifier: Apache-2.0
// A file of torch.save. An input that begins with 'Z' is the archive; others are packed into one:
// the pickle, then storages.
#include "analyzers/readers/tensors/open.hpp"
#include "archive.hpp"
#include "tensors.hpp"

using namespace halfscope;

namespace {

std::string archive_of(fuzz::Cursor input) {
  std::vector<test::ZipMember> members;
  const bool big = input.number(1) == 1;
  members.push_back(fuzz::zip_member("archive/data.pkl", input.part(), false));
  members.push_back(fuzz::zip_member("archive/byteorder", big ? "big" : "little", false));
  for (int key = 0; key < 3 && !input.done(); ++key) {
    const std::string name = "archive/data/" + std::to_string(key);
    members.push_back(fuzz::zip_member(name, input.part(), false));
  }
  return test::zip_of(members);
}

}  // namespace

HALFSCOPE_FUZZ_TARGET(torch) {
  const bool raw = !bytes.empty() && bytes[0] == 'Z';
  const std::string archive =
      raw ? std::string(fuzz::Cursor(bytes.subspan(1)).rest()) : archive_of(fuzz::Cursor(bytes));
  const fuzz::MemoryFile file(archive);
  fuzz::read_or_refuse(file.path(), [&] {
    const auto read = analyzers::readers::tensors::open_tensor_file(file.path());
    fuzz::contents_of(*read);
    fuzz::require_by_name(*read);
  });
}
