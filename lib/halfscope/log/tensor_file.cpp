// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/tensor_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "halfscope/log/error.hpp"

namespace halfscope::log {

std::optional<std::uint64_t> element_count(const std::vector<std::uint64_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return 0;
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  constexpr std::size_t kShown = 8;
  const std::size_t shown = std::min(shape.size(), kShown);
  return fmt::format("[{}{}]",
                     fmt::join(shape.begin(), shape.begin() + static_cast<long>(shown), ", "),
                     shape.size() > kShown ? ", ..." : "");
}

std::string place_text(std::string_view file, std::string_view tensor) {
  constexpr std::size_t kShown = 200;
  return fmt::format("{}: tensor '{}{}'", file, printable(tensor.substr(0, kShown)),
                     tensor.size() > kShown ? "..." : "");
}

std::string_view TensorFile::Tensors::name(std::size_t i) const {
  const std::uint64_t begin = i == 0 ? 0 : entries[i - 1].name_end;
  return std::string_view(names).substr(begin, entries[i].name_end - begin);
}

std::span<const std::uint64_t> TensorFile::Tensors::shape(std::size_t i) const {
  const std::uint64_t begin = i == 0 ? 0 : entries[i - 1].shape_end;
  return std::span(shapes).subspan(begin, entries[i].shape_end - begin);
}

void TensorFile::add(std::string_view name, std::span<const std::uint64_t> shape, Dtype dtype,
                     std::uint64_t place) {
  tensors_.names += name;
  tensors_.shapes.insert(tensors_.shapes.end(), shape.begin(), shape.end());
  tensors_.entries.push_back({tensors_.names.size(), tensors_.shapes.size(), place, dtype});
}

void TensorFile::index_names() {
  tensors_.names.shrink_to_fit();
  tensors_.shapes.shrink_to_fit();
  tensors_.entries.shrink_to_fit();
  by_name_.resize(size());
  std::iota(by_name_.begin(), by_name_.end(), std::uint32_t{0});
  const auto name = [&](std::uint32_t i) { return tensors_.name(i); };
  if (!std::ranges::is_sorted(by_name_, {}, name)) std::ranges::sort(by_name_, {}, name);
}

std::optional<std::size_t> TensorFile::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(by_name_, name, {},
                                              [&](std::uint32_t i) { return tensors_.name(i); });
  const bool is_there = found != by_name_.end() && tensors_.name(*found) == name;
  return is_there ? std::optional<std::size_t>(*found) : std::nullopt;
}

NamedTensor TensorFile::outline_at(std::size_t i) const {
  const auto shape = tensors_.shape(i);
  NamedTensor tensor{std::string(tensors_.name(i)), {shape.begin(), shape.end()}, {}};
  const auto count = static_cast<std::size_t>(*element_count(tensor.shape));
  tensor.view = {tensors_.entries[i].dtype, nullptr, count};
  return tensor;
}

std::shared_ptr<const NamedTensor> TensorFile::load(std::size_t i) const {
  struct Held {
    NamedTensor tensor;
    FileBytes bytes;
  };
  const auto held = std::make_shared<Held>(Held{outline_at(i), {}});
  held->bytes = values(held->tensor, place(i));
  held->tensor.view.data = held->bytes.bytes.data();
  return {held, &held->tensor};
}

void TensorFile::for_each(const std::function<void(const NamedTensor&)>& visit) const {
  for (std::size_t i = 0; i < size(); ++i) visit(*load(i));
}

std::vector<std::string> TensorFile::names() const {
  std::vector<std::string> all;
  all.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) all.emplace_back(tensors_.name(i));
  return all;
}

void TensorFile::for_each_name(const std::function<void(const std::string&)>& visit) const {
  for (std::size_t i = 0; i < size(); ++i) visit(std::string(tensors_.name(i)));
}

std::shared_ptr<const NamedTensor> TensorFile::tensor(std::string_view name) const {
  const auto i = find(name);
  return i ? load(*i) : nullptr;
}

std::optional<NamedTensor> TensorFile::outline(std::string_view name) const {
  const auto i = find(name);
  return i ? std::optional(outline_at(*i)) : std::nullopt;
}

void TensorFile::keep_only(const std::set<std::string>& names) {
  std::erase_if(skipped_, [&](const SkippedTensor& one) { return !names.contains(one.name); });
  const Tensors all = std::exchange(tensors_, {});
  for (std::size_t i = 0; i < all.entries.size(); ++i) {
    const auto parts = parts_.find(all.name(i));
    const bool stored = parts == parts_.end();
    if (!names.contains(stored ? std::string(all.name(i)) : parts->second.front())) continue;
    add(all.name(i), all.shape(i), all.entries[i].dtype, all.entries[i].place);
  }
  index_names();
}

void TensorFile::rename(const std::string& name) {
  for (SkippedTensor& skipped : skipped_) skipped.name = name;
  if (size() != 1) return;  // a file that was replaced since it was listed may have more
  tensors_.names = name;
  tensors_.entries.front().name_end = name.size();
}

}  // namespace halfscope::log
