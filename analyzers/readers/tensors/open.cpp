// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/open.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "analyzers/readers/common/kind_names.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/input/content.hpp"
#include "analyzers/readers/input/standard_input.hpp"
#include "analyzers/readers/tensors/zip_archive.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/safetensors.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

using Opener = std::unique_ptr<log::TensorFile> (*)(const log::OpenPath&, std::optional<Dtype>);

std::unique_ptr<log::TensorFile> open_safetensors(const log::OpenPath& path, std::optional<Dtype>) {
  return std::make_unique<log::Safetensors>(path);
}

/// Opens an NPZ file or a file of torch.save. Both are ZIP archives; their members differ.
std::unique_ptr<log::TensorFile> open_zip(const log::OpenPath& path, std::optional<Dtype> as) {
  auto archive = std::make_unique<ZipArchive>(path, "an NPZ file or a file of torch.save");
  if (is_torch_archive(*archive)) return open_torch(path.path, std::move(archive));
  return open_npz(std::move(archive), as);
}

/// A kind of file with certain bytes at offset `at`. A new kind needs a reader and a row here.
struct ReaderRow {
  std::string_view starts_with;
  std::size_t at;
  Opener open;
};
constexpr std::array kReaders = {
    ReaderRow{"\x93NUMPY", 0, open_npy},
    ReaderRow{"PK\x03\x04", 0, open_zip},
    ReaderRow{"PK\x05\x06", 0, open_zip},  // a ZIP archive without members
    ReaderRow{"{", 8, open_safetensors},   // the header follows its length in 8 bytes
    ReaderRow{kOldTorchStart, 0, refuse_old_torch},
};

[[noreturn]] void refuse(const std::string& shown, const log::OpenFile& file) {
  if (!file.remarks().refusal.empty()) throw log::BadInput(file.remarks().refusal);
  const input::Content content = input::content_of(file);
  const std::string text =
      shown + ": is " + content.is + "; " + content.way_out + common::kKindsListed;
  if (content.lines) throw IsText(text);
  throw log::BadInput(text);
}

}  // namespace

std::unique_ptr<log::TensorFile> open_tensor_file(const log::OpenPath& path,
                                                  std::optional<Dtype> as) {
  const std::string shown = log::printable(path.path.string());
  if (!input::is_file(path.path)) {  // opening a device might block
    throw log::BadInput(
        shown + ": is not a regular file; save it to one first, or write it to standard input (-)");
  }
  if (path.open()->error() != 0) throw log::BadInput(shown + ": cannot be opened for reading");
  if (is_dcp_metadata(path)) return open_dcp(path);
  if (path.path.extension() == ".distcp") {
    throw log::BadInput(shown + ": is a part of a checkpoint, expected all of it; name its folder");
  }
  if (input::is_foreign(*path.open())) refuse(shown, *path.open());
  const std::string head = common::beginning_of(path, 16);
  for (const ReaderRow& row : kReaders) {
    if (head.size() > row.at &&
        std::string_view(head).substr(row.at).starts_with(row.starts_with)) {
      return row.open(path, as);
    }
  }
  if (path.path.extension() == ".safetensors") {
    return open_safetensors(path, as);  // throws, with the reason
  }
  refuse(shown, *path.open());
}

}  // namespace halfscope::analyzers::readers::tensors
