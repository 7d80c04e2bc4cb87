// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>
#include <utility>

#include "halfscope/log/error.hpp"
#include "halfscope/log/mapped_file.hpp"
#include "halfscope/log/safetensors_header.hpp"

namespace halfscope::log {
namespace {

constexpr std::uint64_t kHeaderLengthBytes = 8;
constexpr std::string_view kDamaged = "the file is damaged, write it again";

/// A dtype whose numbers are not counted; its width is needed to check the tensor's size.
struct OtherDtype {
  std::string_view name;
  unsigned bits;
  std::string_view what;
};
constexpr OtherDtype kOtherDtypes[] = {
    {"BOOL", 8, "is not a floating-point type"}, {"U8", 8, "is not a floating-point type"},
    {"I8", 8, "is not a floating-point type"},   {"U16", 16, "is not a floating-point type"},
    {"I16", 16, "is not a floating-point type"}, {"U32", 32, "is not a floating-point type"},
    {"I32", 32, "is not a floating-point type"}, {"U64", 64, "is not a floating-point type"},
    {"I64", 64, "is not a floating-point type"}, {"C64", 64, "is complex"},
    {"F8_E8M0", 8, "holds scales, not values"},  {"F8_E4M3FNUZ", 8, "is not supported"},
    {"F8_E5M2FNUZ", 8, "is not supported"},      {"F6_E2M3", 6, "is not supported"},
    {"F6_E3M2", 6, "is not supported"},          {"F4", 4, "is not supported"},
};

const OtherDtype* find_other(std::string_view name) {
  const auto* row = std::find_if(std::begin(kOtherDtypes), std::end(kOtherDtypes),
                                 [&](const OtherDtype& other) { return other.name == name; });
  return row == std::end(kOtherDtypes) ? nullptr : row;
}

/// Returns the bits of an element; 0 for an unknown dtype.
unsigned bits_of(std::string_view dtype) {
  if (const auto known = find_dtype(dtype)) return static_cast<unsigned>(format_of(*known).width);
  const OtherDtype* const other = find_other(dtype);
  return other == nullptr ? 0 : other->bits;
}

std::string skip_reason(std::string_view dtype) {
  if (const OtherDtype* const other = find_other(dtype)) {
    return fmt::format("dtype {} {}", dtype, other->what);
  }
  return fmt::format("dtype {} is unknown, expected F16, BF16, F32, F64, F8_E4M3 or F8_E5M2",
                     printable(dtype.substr(0, 64)));
}

/// Returns the header's bytes, after checking their number against the file's size.
FileBytes header_of(const MappedFile& file) {
  const std::uint64_t size = file.size();
  if (size < kHeaderLengthBytes) {
    throw BadInput(
        fmt::format("{}: holds {} bytes, expected at least 8 (the length of a safetensors "
                    "header); the file is cut short, copy or write it again",
                    file.name(), size));
  }
  const FileBytes start = file.range(0, kHeaderLengthBytes);
  std::uint64_t length = 0;
  for (std::uint64_t i = kHeaderLengthBytes; i-- > 0;) {
    length = length << 8 | std::to_integer<std::uint64_t>(start.bytes[i]);
  }
  if (length > kMaxSafetensorsHeader) {
    throw BadInput(
        fmt::format("{}: names a header of {} bytes, expected at most {}; the file is damaged "
                    "or not a safetensors file, write it again",
                    file.name(), length, kMaxSafetensorsHeader));
  }
  if (length > size - kHeaderLengthBytes) {
    throw BadInput(
        fmt::format("{}: names a header of {} bytes, but holds {} after the length; the "
                    "file is cut short, copy or write it again",
                    file.name(), length, size - kHeaderLengthBytes));
  }
  return file.range(kHeaderLengthBytes, kHeaderLengthBytes + length);
}

/// Checks that a tensor's bytes match its shape and dtype. Accepts any size for an unknown dtype.
void check_size(const SafetensorsEntry& entry, const std::string& file) {
  const std::uint64_t held = entry.end - entry.begin;
  const auto place = [&] { return place_text(file, entry.name); };
  const auto count = element_count(entry.shape);
  std::uint64_t bits = 0;
  if (!count || __builtin_mul_overflow(*count, std::max(bits_of(entry.dtype), 1u), &bits)) {
    throw BadInput(
        fmt::format("{} holds {} bytes, but its shape {} needs more than any file can hold;"
                    " {}",
                    place(), held, shape_text(entry.shape), kDamaged));
  }
  if (bits_of(entry.dtype) == 0) return;
  if (bits % 8 != 0) {
    throw BadInput(fmt::format("{} has {} bits in shape {} of {}, expected whole bytes; {}",
                               place(), bits, shape_text(entry.shape), entry.dtype, kDamaged));
  }
  if (held != bits / 8) {
    throw BadInput(fmt::format("{} holds {} bytes, expected {} for shape {} of {}; {}", place(),
                               held, bits / 8, shape_text(entry.shape), entry.dtype, kDamaged));
  }
}

/// Checks that the tensors, in ascending order, fill the data without gaps or overlap.
void check_layout(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes,
                  const std::string& file) {
  std::uint64_t previous_end = 0;
  for (const SafetensorsEntry& entry : entries) {
    const auto place = [&] { return place_text(file, entry.name); };
    if (entry.end < entry.begin) {
      throw BadInput(fmt::format("{} ends at byte {}, expected {} (its begin) or more; {}", place(),
                                 entry.end, entry.begin, kDamaged));
    }
    if (entry.begin != previous_end) {
      throw BadInput(fmt::format(
          "{} begins at byte {} and {}, expected {}; {}", place(), entry.begin,
          entry.begin < previous_end ? "overlaps the tensor before it" : "leaves a hole",
          previous_end, kDamaged));
    }
    check_size(entry, file);
    if (entry.end > data_bytes) {
      throw BadInput(
          fmt::format("{} ends at byte {} of the data, but the file holds {}; it is cut "
                      "short, copy or write it again",
                      place(), entry.end, data_bytes));
    }
    previous_end = entry.end;
  }
  if (previous_end != data_bytes) {
    throw BadInput(fmt::format("{}: holds {} bytes of data, expected {} as its tensors take; {}",
                               file, data_bytes, previous_end, kDamaged));
  }
}

}  // namespace

Safetensors::Safetensors(const OpenPath& path) : file_(std::make_unique<MappedFile>(path, true)) {
  const FileBytes held = header_of(*file_);
  const std::string_view text(reinterpret_cast<const char*>(held.bytes.data()), held.bytes.size());
  SafetensorsHeader header = parse_safetensors_header(text, file_->name());
  const auto where = [](const SafetensorsEntry& entry) {
    return std::tie(entry.begin, entry.end, entry.name);
  };
  if (!std::ranges::is_sorted(header.entries, {}, where)) {  // usually they are sorted
    std::ranges::sort(header.entries, {}, where);
  }
  data_begin_ = kHeaderLengthBytes + text.size();
  check_layout(header.entries, data_bytes(), file_->name());
  file_->leave(0, data_begin_);
  for (SafetensorsEntry& entry : header.entries) {
    if (const auto dtype = find_dtype(entry.dtype)) {
      add(entry, *dtype);
    } else {
      skipped_.push_back({std::move(entry.name), skip_reason(entry.dtype)});
    }
  }
  names_.shrink_to_fit();
  shapes_.shrink_to_fit();
  entries_.shrink_to_fit();
  by_name_.resize(entries_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::uint32_t{0});
  const auto name = [&](std::uint32_t place) { return name_of(place); };
  if (!std::ranges::is_sorted(by_name_, {}, name)) std::ranges::sort(by_name_, {}, name);
  metadata_ = std::move(header.metadata);
}

Safetensors::~Safetensors() = default;

void Safetensors::add(const SafetensorsEntry& entry, Dtype dtype) {
  names_ += entry.name;
  shapes_.insert(shapes_.end(), entry.shape.begin(), entry.shape.end());
  // 32 bits suffice: a header is at most kMaxSafetensorsHeader bytes long.
  entries_.push_back({static_cast<std::uint32_t>(names_.size()),
                      static_cast<std::uint32_t>(shapes_.size()), entry.begin,
                      *element_count(entry.shape), dtype});
}

std::string_view Safetensors::name_of(std::size_t place) const {
  const std::uint64_t begin = place == 0 ? 0 : entries_[place - 1].name_end;
  return std::string_view(names_).substr(begin, entries_[place].name_end - begin);
}

NamedTensor Safetensors::at(std::size_t place) const {
  const Entry& entry = entries_[place];
  const std::uint64_t begin = place == 0 ? 0 : entries_[place - 1].shape_end;
  const std::span shape = std::span(shapes_).subspan(begin, entry.shape_end - begin);
  return {std::string(name_of(place)),
          {shape.begin(), shape.end()},
          {entry.dtype, nullptr, static_cast<std::size_t>(entry.count)}};
}

std::optional<std::size_t> Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(by_name_, name, {},
                                              [&](std::uint32_t place) { return name_of(place); });
  const bool is_there = found != by_name_.end() && name_of(*found) == name;
  return is_there ? std::optional<std::size_t>(*found) : std::nullopt;
}

std::uint64_t Safetensors::data_bytes() const { return file_->size() - data_begin_; }

std::shared_ptr<const NamedTensor> Safetensors::load(std::size_t place) const {
  struct Held {
    FileBytes bytes;
    NamedTensor tensor;
  };
  auto held = std::make_shared<Held>(Held{{}, at(place)});
  const std::uint64_t begin = data_begin_ + entries_[place].begin;
  held->bytes = file_->range(begin, begin + held->tensor.view.bytes());
  held->tensor.view.data = held->bytes.bytes.data();
  return {held, &held->tensor};
}

void Safetensors::for_each(const std::function<void(const NamedTensor&)>& visit) const {
  constexpr std::uint64_t kBytesALeave = std::uint64_t{1} << 24;
  std::uint64_t left = 0;
  for (std::size_t place = 0; place < entries_.size(); ++place) {
    const auto tensor = load(place);
    visit(*tensor);
    const std::uint64_t end = data_begin_ + entries_[place].begin + tensor->view.bytes();
    if (end < left + kBytesALeave) continue;
    file_->leave(left, end);
    left = end;
  }
}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> all;
  for (std::size_t place = 0; place < entries_.size(); ++place) all.emplace_back(name_of(place));
  return all;
}

void Safetensors::for_each_name(const std::function<void(const std::string&)>& visit) const {
  for (std::size_t place = 0; place < entries_.size(); ++place) {
    visit(std::string(name_of(place)));
  }
}

std::shared_ptr<const NamedTensor> Safetensors::tensor(std::string_view name) const {
  const auto place = find(name);
  if (!place) return nullptr;
  auto tensor = load(*place);
  leave_before(data_begin_ + entries_[*place].begin);
  return tensor;
}

/// Releases the pages well before `begin`: tensors are mostly requested in file order, so they are
/// not needed again, and otherwise are simply reread.
void Safetensors::leave_before(std::uint64_t begin) const {
  constexpr std::uint64_t kKept = std::uint64_t{1} << 24;
  std::uint64_t left = left_.load();
  if (begin < left) left_ = begin;
  if (begin < left + 2 * kKept || !left_.compare_exchange_strong(left, begin - kKept)) return;
  file_->leave(left, begin - kKept);
}

std::optional<NamedTensor> Safetensors::outline(std::string_view name) const {
  const auto place = find(name);
  if (!place) return std::nullopt;
  return at(*place);
}

std::string Safetensors::shows_weights() const {
  const auto format = metadata_.find("format");
  if (format == metadata_.end() || metadata_.contains("gradients")) return "";
  return fmt::format("has the metadata \"format\": \"{}\", as saved models do",
                     printable(format->second));
}

}  // namespace halfscope::log
