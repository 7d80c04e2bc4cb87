// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/open.hpp"

#include <array>
#include <fstream>
#include <string_view>

#include "analyzers/readers/numpy_file.hpp"
#include "analyzers/readers/torch_file.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/safetensors.hpp"

namespace halfscope::readers {
namespace {

using Opener = std::unique_ptr<log::TensorFile> (*)(const std::filesystem::path&);

std::unique_ptr<log::TensorFile> open_safetensors(const std::filesystem::path& path) {
  return std::make_unique<log::Safetensors>(path);
}

/// A kind of file, by the bytes it starts with. To add one: a reader in this folder, a row here.
struct Row {
  std::string_view starts_with;
  std::size_t at;
  Opener open;
};
constexpr std::array kReaders = {
    Row{"\x93NUMPY", 0, open_npy},
    Row{"PK\x03\x04", 0, open_npz},
    Row{"PK\x05\x06", 0, open_npz},  // an archive without members
    Row{"{", 8, open_safetensors},   // after the header's length
    Row{kOldTorchStart, 0, refuse_torch_file},
};

}  // namespace

std::unique_ptr<log::TensorFile> open_tensor_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {  // a pipe would be waited for
    throw log::BadInput(log::printable(path.string()) +
                        ": is no regular file; save it to one first");
  }
  std::ifstream in(path, std::ios::binary);
  std::array<char, 16> buffer{};
  if (!in) throw log::BadInput(log::printable(path.string()) + ": cannot be opened for reading");
  in.read(buffer.data(), buffer.size());
  const std::string_view head(buffer.data(), static_cast<std::size_t>(in.gcount()));
  for (const Row& row : kReaders) {
    if (head.size() > row.at && head.substr(row.at).starts_with(row.starts_with)) {
      return row.open(path);
    }
  }
  if (path.extension() == ".safetensors") return open_safetensors(path);  // it says what is wrong
  throw log::BadInput(log::printable(path.string()) +
                      ": its first bytes are those of no known log; want a run log folder, or a "
                      "safetensors, NPY or NPZ file");
}

}  // namespace halfscope::readers
