// SPDX-License-Identifier: Apache-2.0
// NPY and NPZ files. Format: numpy.lib.format, and ZIP for NPZ. Nothing is ever unpickled.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "analyzers/readers/tensors/element_order.hpp"
#include "analyzers/readers/tensors/npy_header.hpp"
#include "analyzers/readers/tensors/open.hpp"
#include "analyzers/readers/tensors/zip_archive.hpp"
#include "halfscope/log/mapped_file.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

/// Arrays in NPY streams. A derived class adds them and reads the streams.
class NumpyFile : public log::TensorFile {
 protected:
  /// Adds the array of stream number `stream`, or its name to the skipped ones.
  void add_array(const std::string& name, NpyArray&& array, std::uint64_t stream) {
    if (array.skip.empty()) {
      add(name, array.shape, array.dtype, arrays_.size());
      arrays_.push_back({stream, array.data_offset, array.big_endian, array.first_axis_fastest});
    } else {
      skipped_.push_back({name, std::move(array.skip), array.may_be_bfloat16});
    }
  }

  /// Returns the bytes of a stream from `begin` on.
  virtual log::FileBytes read(std::uint64_t stream, std::uint64_t begin) const = 0;

 private:
  struct Array {
    std::uint64_t stream, data_offset;
    bool big_endian, first_axis_fastest;
  };

  log::FileBytes values(const log::NamedTensor& tensor, std::uint64_t place) const override {
    const Array& array = arrays_[static_cast<std::size_t>(place)];
    const auto& shape = tensor.shape;
    std::vector<std::uint64_t> strides(shape.size());
    const auto scan = [](auto first, auto last, auto to) {
      std::exclusive_scan(first, last, to, std::uint64_t{1}, std::multiplies<>());
    };
    if (array.first_axis_fastest) {
      scan(shape.begin(), shape.end(), strides.begin());
    } else {
      scan(shape.rbegin(), shape.rend(), strides.rbegin());
    }
    return in_c_order(read(array.stream, array.data_offset), tensor, strides, array.big_endian);
  }

  std::vector<Array> arrays_;
};

class NpyFile final : public NumpyFile {
 public:
  NpyFile(const log::OpenPath& path, std::optional<Dtype> as) : file_(path) {
    const std::string name = path.path.stem().string();
    const auto beginning = [&](std::size_t most) {
      const auto held = file_.range(0, std::min<std::uint64_t>(most, file_.size()));
      return std::vector(held.bytes.begin(), held.bytes.end());
    };
    const std::string place = log::place_text(file_.name(), name);
    add_array(name, read_npy_header(beginning, file_.size(), place, as), 0);
    index_names();
  }

 private:
  log::FileBytes read(std::uint64_t, std::uint64_t begin) const override {
    return file_.range(begin, file_.size());
  }

  log::MappedFile file_;
};

class NpzFile final : public NumpyFile {
 public:
  NpzFile(std::unique_ptr<ZipArchive> archive, std::optional<Dtype> as)
      : archive_(std::move(archive)) {
    constexpr std::string_view kSuffix = ".npy";
    for (const ZipMember& member : archive_->members()) {
      if (!member.name.ends_with(kSuffix)) {
        skipped_.push_back({member.name, "is not an array (its name does not end in .npy)"});
        continue;
      }
      const auto beginning = [&](std::size_t most) { return archive_->beginning(member, most); };
      add_array(member.name.substr(0, member.name.size() - kSuffix.size()),
                read_npy_header(beginning, member.unpacked, archive_->place(member), as),
                member.index);
    }
    index_names();
  }

 private:
  log::FileBytes read(std::uint64_t member, std::uint64_t begin) const override {
    log::FileBytes held = archive_->whole(archive_->members()[static_cast<std::size_t>(member)]);
    held.bytes = held.bytes.subspan(static_cast<std::size_t>(begin));
    return held;
  }

  std::unique_ptr<ZipArchive> archive_;
};

}  // namespace

std::unique_ptr<log::TensorFile> open_npy(const log::OpenPath& path, std::optional<Dtype> as) {
  return std::make_unique<NpyFile>(path, as);
}

std::unique_ptr<log::TensorFile> open_npz(std::unique_ptr<ZipArchive> archive,
                                          std::optional<Dtype> as) {
  return std::make_unique<NpzFile>(std::move(archive), as);
}

}  // namespace halfscope::analyzers::readers::tensors
