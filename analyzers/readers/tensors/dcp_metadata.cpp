// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/dcp_metadata.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

using Extents = std::vector<std::uint64_t>;

constexpr std::string_view kAdvice =
    "write the checkpoint again with torch.distributed.checkpoint.save";
/// Most chunks of one tensor. Limits the time to compare them with each other.
constexpr std::size_t kMostChunks = 1 << 14;

/// Returns true if two chunks, of the same number of axes, share an element.
bool overlap(const DcpChunk& a, const DcpChunk& b) {
  for (std::size_t axis = 0; axis < a.sizes.size(); ++axis) {
    if (a.offsets[axis] + a.sizes[axis] <= b.offsets[axis] ||
        b.offsets[axis] + b.sizes[axis] <= a.offsets[axis]) {
      return false;
    }
  }
  return true;
}

/// Returns the axis along which the chunks have the most different offsets.
std::size_t widest_axis(const std::vector<const DcpChunk*>& chunks) {
  std::size_t widest = 0, most = 0;
  for (std::size_t axis = 0; axis < chunks.front()->offsets.size(); ++axis) {
    std::set<std::uint64_t> offsets;
    for (const DcpChunk* const chunk : chunks) offsets.insert(chunk->offsets[axis]);
    if (offsets.size() > most) std::tie(widest, most) = std::pair(axis, offsets.size());
  }
  return widest;
}

/// Returns a chunk that shares an element with another chunk. Null if no chunks overlap.
const DcpChunk* overlapping(const std::vector<DcpChunk>& all) {
  std::vector<const DcpChunk*> chunks;
  for (const DcpChunk& chunk : all) {
    if (*log::element_count(chunk.sizes) > 0) chunks.push_back(&chunk);
  }
  if (chunks.size() < 2) return nullptr;
  if (chunks.front()->offsets.empty()) return chunks[1];  // a tensor without axes has one element
  const std::size_t axis = widest_axis(chunks);
  const auto begin = [&](const DcpChunk* chunk) { return chunk->offsets[axis]; };
  std::ranges::stable_sort(chunks, {}, begin);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::uint64_t end = begin(chunks[i]) + chunks[i]->sizes[axis];
    for (std::size_t j = i + 1; j < chunks.size() && begin(chunks[j]) < end; ++j) {
      if (overlap(*chunks[i], *chunks[j])) return chunks[j];
    }
  }
  return nullptr;
}

bool lies_in(const DcpChunk& chunk, const Extents& size) {
  if (chunk.offsets.size() != size.size() || chunk.sizes.size() != size.size()) return false;
  for (std::size_t axis = 0; axis < size.size(); ++axis) {
    if (chunk.offsets[axis] > size[axis]) return false;
    if (chunk.sizes[axis] > size[axis] - chunk.offsets[axis]) return false;
  }
  return true;
}

/// Returns the reason why a tensor's chunks do not fill it exactly. Empty if they do.
std::string wrong_with(const DcpTensor& tensor) {
  const auto elements = log::element_count(tensor.size);
  if (!elements) return "has a shape that no file can hold";
  if (tensor.chunks.size() > kMostChunks) {
    return fmt::format("has {} chunks, expected at most {}", tensor.chunks.size(), kMostChunks);
  }
  std::uint64_t held = 0;
  for (const DcpChunk& chunk : tensor.chunks) {
    if (!lies_in(chunk, tensor.size)) {
      return fmt::format("has a chunk of shape {} at {}, outside its shape {}",
                         log::shape_text(chunk.sizes), log::shape_text(chunk.offsets),
                         log::shape_text(tensor.size));
    }
    if (__builtin_add_overflow(held, *log::element_count(chunk.sizes), &held)) break;
  }
  if (const DcpChunk* const second = overlapping(tensor.chunks)) {
    return fmt::format("has chunks that overlap at {}", log::shape_text(second->offsets));
  }
  if (held == *elements) return "";
  return fmt::format("has chunks of {} elements together, expected {}", held, *elements);
}

class Reader {
 public:
  Reader(const PickleValues& values, std::string place)
      : values_(values), place_(std::move(place)) {}

  std::vector<DcpTensor> read(std::vector<log::SkippedTensor>& skipped) {
    const auto tensors = field(values_.root, "state_dict_metadata");
    const auto places = field(values_.root, "storage_data");
    if (!is_dict(tensors) || !is_dict(places)) {
      throw log::BadInput(fmt::format(
          "{}: holds no state_dict_metadata and storage_data, expected the metadata of a "
          "checkpoint; {}",
          place_, kAdvice));
    }
    take_places(values_.items(*places));
    std::vector<DcpTensor> found;
    const auto items = values_.items(*tensors);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
      take_tensor(items[i], items[i + 1], found, skipped);
    return found;
  }

 private:
  struct Place {
    std::string file;
    std::uint64_t offset = 0, length = 0;
  };

  bool is(std::optional<ValueId> id, ValueKind kind) const {
    return id && values_.kind(*id) == kind;
  }
  bool is_dict(std::optional<ValueId> id) const { return is(id, ValueKind::dict); }
  std::string_view text_of(ValueId id) const { return values_.texts[values_.values[id].index]; }

  std::optional<ValueId> field(ValueId record, std::string_view name) const {
    if (values_.kind(record) != ValueKind::dict) return std::nullopt;
    const auto items = values_.items(record);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (is(items[i], ValueKind::text) && text_of(items[i]) == name) return items[i + 1];
    }
    return std::nullopt;
  }
  std::optional<std::uint64_t> number(std::optional<ValueId> id) const {
    if (!is(id, ValueKind::integer) || values_.values[*id].number < 0) return std::nullopt;
    return static_cast<std::uint64_t>(values_.values[*id].number);
  }
  std::optional<Extents> extents(ValueId record, std::string_view name) const {
    const auto found = field(record, name);
    if (!is(found, ValueKind::tuple)) return std::nullopt;
    Extents all;
    for (const ValueId id : values_.items(*found)) {
      const auto extent = number(id);
      if (!extent) return std::nullopt;
      all.push_back(*extent);
    }
    return all;
  }

  void take_places(std::span<const ValueId> items) {
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const auto name = field(items[i], "fqn"), file = field(items[i + 1], "relative_path");
      const auto offset = number(field(items[i + 1], "offset"));
      const auto length = number(field(items[i + 1], "length"));
      if (!is(name, ValueKind::text) || !is(file, ValueKind::text) || !offset || !length) continue;
      places_[{std::string(text_of(*name)), extents(items[i], "offset").value_or(Extents())}] = {
          std::string(text_of(*file)), *offset, *length};
    }
  }

  /// Returns a tensor's dtype, with which the state of TensorProperties begins. Null if unknown.
  const TorchType* type_of(ValueId tensor) const {
    const auto properties = field(tensor, "properties");
    const auto state = properties ? field(*properties, "") : std::nullopt;
    const auto items =
        is(state, ValueKind::tuple) ? values_.items(*state) : std::span<const ValueId>();
    if (items.empty() || !is(items[0], ValueKind::global)) return nullptr;
    const TorchGlobal& known = values_.globals[values_.values[items[0]].index];
    return known.what == TorchName::dtype ? known.type : nullptr;
  }

  void take_tensor(ValueId key, ValueId described, std::vector<DcpTensor>& tensors,
                   std::vector<log::SkippedTensor>& skipped) const {
    if (!is(key, ValueKind::text)) return;
    DcpTensor tensor{std::string(text_of(key)), type_of(described), {}, {}};
    const auto size = extents(described, "size");
    const auto chunks = field(described, "chunks");
    if (!size && !chunks) return;  // BytesStorageMetadata: not a tensor
    const auto skip = [&](std::string reason) {
      skipped.push_back({tensor.name, std::move(reason)});
    };
    if (!size || !is(chunks, ValueKind::list)) return skip("is described in an unknown way");
    if (tensor.type == nullptr) return skip("has a dtype that is unknown");
    tensor.size = *size;
    for (const ValueId id : values_.items(*chunks)) {
      const auto offsets = extents(id, "offsets"), sizes = extents(id, "sizes");
      if (!offsets || !sizes) return skip("has a chunk without offsets and sizes");
      const auto place = place_of(tensor.name, *offsets);
      if (place == places_.end()) {
        return skip(
            fmt::format("has a chunk at {} of which no place is told", log::shape_text(*offsets)));
      }
      const Place& at = place->second;
      tensor.chunks.push_back({*offsets, *sizes, at.file, at.offset, at.length});
    }
    std::string wrong = wrong_with(tensor);
    if (!wrong.empty()) return skip(std::move(wrong));
    if (!tensor.type->counted) {
      return skip(fmt::format("dtype {} {}", tensor.type->dtype, tensor.type->skip));
    }
    tensors.push_back(std::move(tensor));
  }

  using Places = std::map<std::pair<std::string, Extents>, Place>;
  /// Returns the place of a chunk. For a tensor in one chunk, the index may have no offsets.
  Places::const_iterator place_of(const std::string& name, const Extents& offsets) const {
    const auto found = places_.find({name, offsets});
    const bool first = std::ranges::all_of(offsets, [](std::uint64_t at) { return at == 0; });
    return found == places_.end() && first ? places_.find({name, {}}) : found;
  }

  const PickleValues& values_;
  std::string place_;
  Places places_;
};

}  // namespace

std::vector<DcpTensor> read_dcp_metadata(std::span<const std::byte> pickle,
                                         const std::string& place,
                                         std::vector<log::SkippedTensor>& skipped) {
  const PickleValues values = read_torch_pickle(pickle, place, std::string(kAdvice));
  return Reader(values, place).read(skipped);
}

}  // namespace halfscope::analyzers::readers::tensors
