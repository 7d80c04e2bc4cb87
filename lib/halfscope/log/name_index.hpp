// SPDX-License-Identifier: Apache-2.0
// An index of a list by name, for lists of a million elements: it stores no copies of the names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace halfscope::log {

/// Maps the name list[place].name to `place`. Refers to the list, which may grow and move its
/// elements; names must not change. A hash table with open addressing, 8 bytes per slot and at most
/// half full; growing it compares no names.
template <typename List>
class NameIndex {
 public:
  explicit NameIndex(const List& list) : list_(&list) {}
  // A copy would still refer to the original's list.
  NameIndex(const NameIndex&) = delete;
  NameIndex& operator=(const NameIndex&) = delete;
  ~NameIndex() = default;

  std::optional<std::size_t> find(std::string_view name) const {
    if (slots_.empty()) return std::nullopt;
    const std::uint32_t hash = hash_of(name);
    for (std::size_t at = first_of(hash); slots_[at].number != 0; at = after(at)) {
      const std::size_t place = slots_[at].number - 1;
      if (slots_[at].hash == hash && name_at(place) == name) return place;
    }
    return std::nullopt;
  }
  /// Adds a place of the list, below 2^32 - 1, whose name is not in the index yet.
  void add(std::size_t place) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    ++count_;
    put({hash_of(name_at(place)), static_cast<std::uint32_t>(place + 1)});
  }
  void clear() {
    slots_ = {};
    count_ = 0;
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t number = 0;  ///< place + 1; 0: the slot is free
  };
  std::string_view name_at(std::size_t place) const { return (*list_)[place].name; }
  static std::uint32_t hash_of(std::string_view name) {
    const std::size_t hash = std::hash<std::string_view>()(name);
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
  }
  std::size_t first_of(std::uint32_t hash) const { return hash & (slots_.size() - 1); }
  std::size_t after(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }
  void put(const Slot& slot) {
    std::size_t at = first_of(slot.hash);
    while (slots_[at].number != 0) at = after(at);
    slots_[at] = slot;
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? 16 : 2 * slots_.size());  // a power of two
    std::swap(before, slots_);
    for (const Slot& slot : before) {
      if (slot.number != 0) put(slot);
    }
  }

  const List* list_;
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace halfscope::log
