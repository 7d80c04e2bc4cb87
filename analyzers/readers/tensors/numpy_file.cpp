// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/numpy_file.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "analyzers/readers/tensors/element_order.hpp"
#include "analyzers/readers/tensors/npy_header.hpp"
#include "halfscope/log/mapped_file.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

using log::NamedTensor;

class NpyFile final : public log::TensorFile {
 public:
  NpyFile(const log::OpenPath& path, std::optional<Dtype> as)
      : file_(path), name_(path.path.stem().string()), array_(read_header(as)) {
    if (!array_.skip.empty()) {
      skipped_.push_back({name_, array_.skip, array_.may_be_bfloat16});
    }
  }

  void for_each(const std::function<void(const NamedTensor&)>& visit) const override {
    if (const auto only = tensor(name_)) visit(*only);
  }

  const std::vector<log::SkippedTensor>& skipped() const override { return skipped_; }

  std::vector<std::string> names() const override {
    return array_.skip.empty() ? std::vector{name_} : std::vector<std::string>();
  }

  std::shared_ptr<const NamedTensor> tensor(std::string_view name) const override {
    if (!array_.skip.empty() || name != name_) return nullptr;
    auto held = std::make_shared<Held>();
    held->bytes = file_.range(array_.data_offset, file_.size());
    const std::byte* start = held->bytes.bytes.data();
    if (is_foreign(array_)) {
      held->rewritten = in_our_order(array_, held->bytes.bytes);
      held->bytes = {};
      start = held->rewritten.data();
    }
    held->tensor = *outline(name);
    held->tensor.view.data = start;
    return {held, &held->tensor};
  }

  std::optional<NamedTensor> outline(std::string_view name) const override {
    if (!array_.skip.empty() || name != name_) return std::nullopt;
    const TensorView view{array_.dtype, nullptr, static_cast<std::size_t>(array_.count)};
    return NamedTensor{name_, array_.shape, view};
  }

 private:
  struct Held {
    log::FileBytes bytes;
    std::vector<std::byte> rewritten;  ///< data in C order, if is_foreign(); else empty
    NamedTensor tensor;
  };

  NpyArray read_header(std::optional<Dtype> as) const {
    const std::string place = log::place_text(file_.name(), name_);
    const std::uint64_t size = file_.size();
    const auto start = file_.range(0, std::min<std::uint64_t>(kNpyPreamble, size));
    const std::uint64_t offset = npy_data_offset(start.bytes, size, place);
    return read_npy_header(file_.range(0, offset).bytes, size, place, as);
  }

  log::MappedFile file_;
  std::string name_;
  NpyArray array_;
  std::vector<log::SkippedTensor> skipped_;
};

}  // namespace

bool is_foreign(const NpyArray& array) {
  return (array.big_endian || array.first_axis_fastest) && array.count > 0;
}

std::vector<std::byte> in_our_order(const NpyArray& array, std::span<const std::byte> data) {
  const std::vector<std::uint64_t> strides = strides_of(array.shape, array.first_axis_fastest);
  const std::size_t width = data.size() / static_cast<std::size_t>(array.count);
  return gathered({array.shape, strides, width, array.big_endian}, data.data());
}

std::unique_ptr<log::TensorFile> open_npy(const log::OpenPath& path, std::optional<Dtype> as) {
  return std::make_unique<NpyFile>(path, as);
}

}  // namespace halfscope::analyzers::readers::tensors
