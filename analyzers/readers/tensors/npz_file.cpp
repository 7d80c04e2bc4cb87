// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzers/readers/tensors/npy_header.hpp"
#include "analyzers/readers/tensors/numpy_file.hpp"
#include "analyzers/readers/tensors/zip_archive.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

using log::NamedTensor;

constexpr std::string_view kSuffix = ".npy";

class NpzFile final : public log::TensorFile {
 public:
  NpzFile(std::unique_ptr<ZipArchive> archive, std::optional<Dtype> as)
      : archive_(std::move(archive)) {
    for (const ZipMember& member : archive_->members()) add(member, as);
    for (std::size_t i = 0; i < arrays_.size(); ++i) by_name_.emplace(name_of(arrays_[i]), i);
  }

  void for_each(const std::function<void(const NamedTensor&)>& visit) const override {
    for (const Entry& entry : arrays_) visit(*load(entry));
  }

  const std::vector<log::SkippedTensor>& skipped() const override { return skipped_; }

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    all.reserve(arrays_.size());
    for (const Entry& entry : arrays_) all.emplace_back(name_of(entry));
    return all;
  }

  std::shared_ptr<const NamedTensor> tensor(std::string_view name) const override {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : load(arrays_[found->second]);
  }

  std::optional<NamedTensor> outline(std::string_view name) const override {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    return outline_of(arrays_[found->second]);
  }

 private:
  struct Entry {
    const ZipMember* member;
    NpyArray array;
  };

  /// A member's bytes, and the tensor in them.
  struct Held {
    log::FileBytes stream;
    std::vector<std::byte> rewritten;  ///< data in C order, if is_foreign(); else empty
    NamedTensor tensor;
  };

  static std::string_view name_of(const Entry& entry) {
    const std::string_view name = entry.member->name;
    return name.substr(0, name.size() - kSuffix.size());
  }

  static NamedTensor outline_of(const Entry& entry) {
    const NpyArray& array = entry.array;
    const TensorView view{array.dtype, nullptr, static_cast<std::size_t>(array.count)};
    return {std::string(name_of(entry)), array.shape, view};
  }

  std::shared_ptr<const NamedTensor> load(const Entry& entry) const {
    const NpyArray& array = entry.array;
    auto held = std::make_shared<Held>();
    held->stream = archive_->whole(*entry.member);
    const auto data = held->stream.bytes.subspan(static_cast<std::size_t>(array.data_offset));
    const std::byte* start = data.data();
    if (is_foreign(array)) {
      held->rewritten = in_our_order(array, data);
      held->stream = {};
      start = held->rewritten.data();
    }
    held->tensor = outline_of(entry);
    held->tensor.view.data = start;
    return {held, &held->tensor};
  }

  void add(const ZipMember& member, std::optional<Dtype> as) {
    if (!std::string_view(member.name).ends_with(kSuffix)) {
      skipped_.push_back({member.name, "is not an array (its name does not end in .npy)"});
      return;
    }
    Entry entry{&member, read_header(member, as)};
    if (entry.array.skip.empty()) {
      arrays_.push_back(std::move(entry));
    } else {
      skipped_.push_back(
          {std::string(name_of(entry)), std::move(entry.array.skip), entry.array.may_be_bfloat16});
    }
  }

  NpyArray read_header(const ZipMember& member, std::optional<Dtype> as) const {
    const std::string place = archive_->place(member);
    std::vector<std::byte> header = archive_->beginning(member, kNpyPreamble);
    const auto offset = static_cast<std::size_t>(npy_data_offset(header, member.unpacked, place));
    if (offset > header.size()) header = archive_->beginning(member, offset);
    header.resize(offset);
    return read_npy_header(header, member.unpacked, place, as);
  }

  std::unique_ptr<ZipArchive> archive_;
  std::vector<Entry> arrays_;
  std::unordered_map<std::string_view, std::size_t> by_name_;  ///< index into arrays_
  std::vector<log::SkippedTensor> skipped_;
};

}  // namespace

std::unique_ptr<log::TensorFile> open_npz(const log::OpenPath& path, std::optional<Dtype> as) {
  return open_npz(std::make_unique<ZipArchive>(path, "an NPZ file"), as);
}

std::unique_ptr<log::TensorFile> open_npz(std::unique_ptr<ZipArchive> archive,
                                          std::optional<Dtype> as) {
  return std::make_unique<NpzFile>(std::move(archive), as);
}

}  // namespace halfscope::analyzers::readers::tensors
