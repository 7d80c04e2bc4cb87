// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/open.hpp"

#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "analyzers/readers/common/kind_names.hpp"
#include "analyzers/readers/tensors/numpy_file.hpp"
#include "analyzers/readers/tensors/torch_file.hpp"
#include "analyzers/readers/tensors/zip_archive.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/safetensors.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

using Opener = std::unique_ptr<log::TensorFile> (*)(const std::filesystem::path&,
                                                    std::optional<Dtype>);

std::unique_ptr<log::TensorFile> open_safetensors(const std::filesystem::path& path,
                                                  std::optional<Dtype>) {
  return std::make_unique<log::Safetensors>(path);
}

/// NPZ and torch.save files are both ZIP archives; what is in them tells.
std::unique_ptr<log::TensorFile> open_zip(const std::filesystem::path& path,
                                          std::optional<Dtype> as) {
  auto archive = std::make_unique<ZipArchive>(path, "an NPZ file or a file of torch.save");
  if (is_torch_archive(*archive)) return open_torch(path, std::move(archive));
  return open_npz(std::move(archive), as);
}

/// A kind of file, by the bytes it starts with. To add one: a reader in this folder, a row here.
struct Row {
  std::string_view starts_with;
  std::size_t at;
  Opener open;
};
constexpr std::array kReaders = {
    Row{"\x93NUMPY", 0, open_npy},
    Row{"PK\x03\x04", 0, open_zip},
    Row{"PK\x05\x06", 0, open_zip},  // an archive without members
    Row{"{", 8, open_safetensors},   // after the header's length
    Row{kOldTorchStart, 0, refuse_old_torch},
};

}  // namespace

std::unique_ptr<log::TensorFile> open_tensor_file(const std::filesystem::path& path,
                                                  std::optional<Dtype> as) {
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
      return row.open(path, as);
    }
  }
  if (path.extension() == ".safetensors")
    return open_safetensors(path, as);  // it says what is wrong
  throw log::BadInput(log::printable(path.string()) +
                      ": its first bytes are those of no known log; want one of " +
                      common::names_of_kinds());
}

}  // namespace halfscope::analyzers::readers::tensors
