// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "halfscope/log/error.hpp"
#include "halfscope/log/safetensors_header.hpp"

namespace halfscope::log {
namespace {

constexpr std::uint64_t kHeaderLengthBytes = 8;
/// First place of tensors that are stored as codes; other places are offsets in the file.
constexpr std::uint64_t kCoded = std::uint64_t{1} << 63;
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
  return other == nullptr ? code_bits(dtype) : other->bits;
}

std::string skip_reason(std::string_view dtype) {
  if (const OtherDtype* const other = find_other(dtype)) {
    return fmt::format("dtype {} {}", dtype, other->what);
  }
  return fmt::format("dtype {} is unknown, expected F4, F6_.., F8_.., F16, BF16, F32 or F64",
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

Safetensors::Safetensors(const OpenPath& path) : file_(path, true) {
  const FileBytes held = header_of(file_);
  const std::string_view text(reinterpret_cast<const char*>(held.bytes.data()), held.bytes.size());
  SafetensorsHeader header = parse_safetensors_header(text, file_.name());
  const auto where = [](const SafetensorsEntry& entry) {
    return std::tie(entry.begin, entry.end, entry.name);
  };
  if (!std::ranges::is_sorted(header.entries, {}, where)) {  // usually they are sorted
    std::ranges::sort(header.entries, {}, where);
  }
  data_begin_ = kHeaderLengthBytes + text.size();
  tensor_bytes_ = file_.size() - data_begin_;
  check_layout(header.entries, *tensor_bytes_, file_.name());
  file_.leave(0, data_begin_);
  std::vector<CodedTensor> coded = coded_tensors(header, file_.name());
  std::unordered_set<std::string> parts;
  for (const CodedTensor& tensor : coded) parts.insert(tensor.parts.begin(), tensor.parts.end());
  auto next = coded.begin();
  for (SafetensorsEntry& entry : header.entries) {
    if (next != coded.end() && next->codes.name == entry.name) {
      add_coded(std::move(*next++));
    } else if (const auto dtype = find_dtype(entry.dtype); dtype && !parts.contains(entry.name)) {
      add(entry.name, entry.shape, *dtype, data_begin_ + entry.begin);
      continue;
    } else if (!parts.contains(entry.name)) {
      skipped_.push_back({entry.name, skip_reason(entry.dtype)});
    }
    others_.push_back(std::move(entry));
  }
  index_names();
  metadata_ = std::move(header.metadata);
  const auto format = metadata_.find("format");
  // Libraries write it ("pt", ...) into saved models.
  if (format != metadata_.end() && !metadata_.contains("gradients")) {
    shows_weights_ = fmt::format("has the metadata \"format\": \"{}\", as saved models do",
                                 printable(format->second));
  }
}

void Safetensors::add_coded(CodedTensor&& tensor) {
  add(tensor.name, tensor.shape, Dtype::f32, kCoded + coded_.size());
  parts_.emplace(tensor.name, tensor.parts);
  if (tensor.scales) shows_weights_ = "holds codes with scales, as quantised models do";
  coded_.push_back(std::move(tensor));
}

FileBytes Safetensors::values(const NamedTensor& tensor, std::uint64_t begin) const {
  if (begin >= kCoded) return decoded(coded_[begin - kCoded], read_, file_.name());
  leave_before(begin);
  return file_.range(begin, begin + tensor.view.bytes());
}

std::shared_ptr<const TensorBlocks> Safetensors::blocks(std::string_view name) const {
  const auto i = find(name);
  if (!i || place(*i) < kCoded || !coded_[place(*i) - kCoded].scales) return nullptr;
  return std::make_shared<TensorBlocks>(blocks_of(coded_[place(*i) - kCoded], read_, file_.name()));
}

std::optional<RawTensor> Safetensors::raw(std::string_view name) const {
  const auto other = std::ranges::find(others_, name, &SafetensorsEntry::name);
  if (other != others_.end()) {
    return RawTensor{other->name, other->dtype, other->shape, read_(*other)};
  }
  const auto i = find(name);
  if (!i || place(*i) >= kCoded) return std::nullopt;
  const NamedTensor tensor = outline_at(*i);
  return RawTensor{tensor.name, std::string(name_of(tensor.view.dtype)), tensor.shape,
                   file_.range(place(*i), place(*i) + tensor.view.bytes())};
}

void Safetensors::for_each(const std::function<void(const NamedTensor&)>& visit) const {
  constexpr std::uint64_t kBytesALeave = std::uint64_t{1} << 24;
  std::uint64_t left = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto tensor = load(i);
    visit(*tensor);
    const std::uint64_t end = place(i) < kCoded ? place(i) + tensor->view.bytes()
                                                : data_begin_ + coded_[place(i) - kCoded].codes.end;
    if (end < left + kBytesALeave) continue;
    file_.leave(left, end);
    left = end;
  }
}

/// Releases the pages well before `begin`: tensors are mostly requested in file order, so they are
/// not needed again, and otherwise are simply reread.
void Safetensors::leave_before(std::uint64_t begin) const {
  constexpr std::uint64_t kKept = std::uint64_t{1} << 24;
  std::uint64_t left = left_.load();
  if (begin < left) left_ = begin;
  if (begin < left + 2 * kKept || !left_.compare_exchange_strong(left, begin - kKept)) return;
  file_.leave(left, begin - kKept);
}

}  // namespace halfscope::log
