// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/tensors/dcp_metadata.hpp"
#include "analyzers/readers/tensors/open.hpp"
#include "analyzers/readers/tensors/zip_archive.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/mapped_file.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

namespace fs = std::filesystem;
using log::NamedTensor;
using log::printable;

constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";

/// Copies a chunk into its tensor, one row of the last axis at a time.
void copy_box(const DcpChunk& chunk, const std::vector<std::uint64_t>& size, std::size_t width,
              const std::byte* from, std::byte* to) {
  const std::size_t axes = size.size();
  const std::uint64_t row = chunk.sizes[axes - 1] * width;
  const std::uint64_t rows =
      std::accumulate(chunk.sizes.begin(), chunk.sizes.end() - 1, std::uint64_t{1},
                      [](std::uint64_t a, std::uint64_t b) { return a * b; });
  std::vector<std::uint64_t> at(axes, 0);
  for (std::uint64_t i = 0; i < rows; ++i) {
    std::uint64_t place = 0;
    for (std::size_t axis = 0; axis < axes; ++axis) {
      place = place * size[axis] + chunk.offsets[axis] + at[axis];
    }
    std::memcpy(to + place * width, from + i * row, row);
    for (std::size_t axis = axes - 1; axis-- > 0 && ++at[axis] == chunk.sizes[axis];) at[axis] = 0;
  }
}

class DcpFile final : public log::TensorFile {
 public:
  explicit DcpFile(const log::OpenPath& metadata) : metadata_(metadata) {
    const std::string pickle = log::read_text(metadata);
    tensors_ = read_dcp_metadata(std::as_bytes(std::span(pickle)),
                                 printable(metadata.path.string()), skipped_);
    shows_weights_ = "is a checkpoint of torch.distributed.checkpoint";
    std::vector<log::SkippedTensor> damaged;
    tensor_bytes_ = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const DcpTensor& tensor = tensors_[i];
      if (std::string wrong = wrong_with(tensor); !wrong.empty()) {
        damaged.push_back({tensor.name, std::move(wrong)});
        continue;
      }
      add(tensor.name, tensor.size, *tensor.type->counted, i);
      *tensor_bytes_ += *log::element_count(tensor.size) * tensor.type->width;
    }
    // Damaged tensors come first, because a message may name only one.
    skipped_.insert(skipped_.begin(), damaged.begin(), damaged.end());
    index_names();
  }

  void for_each(const std::function<void(const NamedTensor&)>& visit) const override {
    for (std::size_t i = 0; i < size(); ++i) {
      visit(*load(i));
      for (const DcpChunk& chunk : tensors_[static_cast<std::size_t>(place(i))].chunks) {
        file(chunk.file)->leave(chunk.offset, chunk.offset + chunk.length);
      }
    }
  }

 private:
  /// Returns a file of the folder, which is opened at the first call.
  std::shared_ptr<const log::MappedFile> file(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    auto& mapped = files_[name];
    if (!mapped) {
      const fs::path path = metadata_.path.parent_path() / name;
      mapped = std::make_shared<const log::MappedFile>(metadata_.at(path));
    }
    return mapped;
  }

  /// Opens a chunk; reads no value. Throws log::BadInput if its shape or dtype is wrong.
  std::unique_ptr<log::TensorFile> opened(const DcpTensor& tensor, const DcpChunk& chunk) const {
    const auto mapped = file(chunk.file);
    const std::uint64_t size = mapped->size();
    if (chunk.offset > size || chunk.length > size - chunk.offset || chunk.length == 0) {
      throw log::BadInput(
          fmt::format("{}: holds {} bytes, expected {} from byte {} on; copy it again",
                      mapped->name(), size, chunk.length, chunk.offset));
    }
    auto archive = std::make_unique<ZipArchive>(mapped, ZipRange{chunk.offset, chunk.length},
                                                "a tensor that torch.save wrote");
    if (!is_torch_archive(*archive)) {
      throw log::BadInput(
          mapped->name() +
          ": holds something that torch.save did not write (packed chunks are not read); "
          "write the checkpoint again without extensions");
    }
    auto file = open_torch(metadata_.path.parent_path() / chunk.file, std::move(archive));
    const auto names = file->names();
    const auto found = names.size() == 1 ? file->outline(names.front()) : std::nullopt;
    if (!found || found->shape != chunk.sizes || found->view.dtype != *tensor.type->counted) {
      throw log::BadInput(
          fmt::format("{}: holds {}, expected a tensor of shape {} and dtype {}", mapped->name(),
                      found ? fmt::format("a tensor of shape {} and dtype {}",
                                          log::shape_text(found->shape), name_of(found->view.dtype))
                            : fmt::format("{} tensors", names.size()),
                      log::shape_text(chunk.sizes), tensor.type->dtype));
    }
    return file;
  }

  /// Returns the reason why a tensor cannot be read. Empty if it can.
  std::string wrong_with(const DcpTensor& tensor) const {
    for (const DcpChunk& chunk : tensor.chunks) {
      if (chunk.file.empty() || chunk.file.find('/') != std::string::npos) {
        return fmt::format("lies in '{}', expected a file of the folder", printable(chunk.file));
      }
      try {
        opened(tensor, chunk);
      } catch (const log::BadInput& wrong) {
        return fmt::format("its chunk at {} cannot be read: {}", log::shape_text(chunk.offsets),
                           wrong.what());
      }
    }
    return "";
  }

  log::FileBytes values(const NamedTensor& whole, std::uint64_t place) const override {
    const DcpTensor& tensor = tensors_[static_cast<std::size_t>(place)];
    const auto values_of = [&](const DcpChunk& chunk) {
      const std::shared_ptr<const log::TensorFile> file = opened(tensor, chunk);
      return file->tensor(file->names().front());
    };
    const std::size_t bytes = whole.view.bytes();
    if (tensor.chunks.size() == 1) {
      const auto piece = values_of(tensor.chunks.front());
      return {{piece, piece->view.data}, {piece->view.data, bytes}};
    }
    const auto all = std::make_shared<std::byte[]>(bytes);
    for (const DcpChunk& chunk : tensor.chunks) {
      if (*log::element_count(chunk.sizes) == 0) continue;
      copy_box(chunk, tensor.size, tensor.type->width, values_of(chunk)->view.data, all.get());
    }
    return {all, {all.get(), bytes}};
  }

  log::OpenPath metadata_;
  std::vector<DcpTensor> tensors_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const log::MappedFile>> files_;
};

/// Returns true if a folder has ".distcp" files.
bool has_parts(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".distcp") return true;
  }
  return false;
}

}  // namespace

bool is_dcp_metadata(const log::OpenPath& path) {
  std::error_code unreadable;
  return path.path.filename() == ".metadata" && fs::is_regular_file(path.path, unreadable) &&
         (common::beginning_of(path, 64).find(kModule) != std::string::npos ||
          has_parts(path.path.parent_path()));
}

std::unique_ptr<log::TensorFile> open_dcp(const log::OpenPath& metadata) {
  return std::make_unique<DcpFile>(metadata);
}

}  // namespace halfscope::analyzers::readers::tensors
