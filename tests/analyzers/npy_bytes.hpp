// SPDX-License-Identifier: Apache-2.0
// NPY streams made by hand, and what the readers make of files of them.
#pragma once

#include <string>
#include <vector>

#include "analyzers/readers/tensors/open.hpp"
#include "analyzers/readers/tensors/zip_archive.hpp"
#include "catch.hpp"
#include "temp_folder.hpp"

namespace halfscope::test {

/// An NPY stream: the dict, padded as numpy pads it, and the data.
inline std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  const int width = version == 1 ? 2 : 4;
  std::string header = dict;
  while ((8 + static_cast<std::size_t>(width) + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  return "\x93NUMPY" + little_endian(static_cast<unsigned>(version), 1) + '\0' +
         little_endian(header.size(), width) + header + data;
}

inline std::string dict(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

/// What a reader gives, copied out of it.
struct Copy {
  std::string name;
  std::vector<std::uint64_t> shape;
  Dtype dtype;
  std::string bytes;
};

inline std::vector<Copy> read_all(const log::TensorFile& file) {
  std::vector<Copy> all;
  file.for_each([&](const log::NamedTensor& t) {
    const auto* const data = reinterpret_cast<const char*>(t.view.data);
    all.push_back({t.name, t.shape, t.view.dtype, std::string(data, t.view.bytes())});
  });
  return all;
}

/// The reader of an NPZ file.
inline std::unique_ptr<log::TensorFile> open_npz(const std::filesystem::path& path,
                                                 std::optional<Dtype> as = std::nullopt) {
  using analyzers::readers::tensors::ZipArchive;
  return analyzers::readers::tensors::open_npz(std::make_unique<ZipArchive>(path, "an NPZ file"),
                                               as);
}

/// The message a file is refused with, on opening or on reading, less its path.
inline std::string refusal(const std::string& name, const std::string& bytes) {
  const TempFolder folder;
  const auto path = folder.write(name, bytes);
  const std::string message = message_of([&] {
    read_all(name.ends_with(".npz") ? *open_npz(path)
                                    : *analyzers::readers::tensors::open_npy(path));
  });
  INFO(message);
  if (message.empty()) return message;
  REQUIRE(message.starts_with(path.string() + ": "));
  CHECK(log::printable(message) == message);
  return message.substr(path.string().size() + 2);
}

}  // namespace halfscope::test
