// SPDX-License-Identifier: Apache-2.0
// Places in a list by the names that stand there, for lists of a million: no name is kept twice.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_set>

namespace halfscope::log {

/// `list[place].name` is the name of a place. Refers to the list, which may grow and move its
/// elements; names do not change.
template <typename List>
class NameIndex {
 public:
  explicit NameIndex(const List& list) : places_(0, Name{&list}, Name{&list}) {}
  // A copy would refer to the first one's list.
  NameIndex(const NameIndex&) = delete;
  NameIndex& operator=(const NameIndex&) = delete;
  ~NameIndex() = default;

  std::optional<std::size_t> find(std::string_view name) const {
    const auto at = places_.find(name);
    return at == places_.end() ? std::nullopt : std::optional(*at);
  }
  /// A place that is in the list; of one name the first stays.
  void add(std::size_t place) { places_.insert(place); }
  void clear() { places_ = Places(0, places_.hash_function(), places_.key_eq()); }

 private:
  struct Name {
    using is_transparent = void;
    const List* list;
    std::string_view of(std::string_view name) const { return name; }
    std::string_view of(std::size_t place) const { return (*list)[place].name; }
    std::size_t operator()(const auto& a) const { return std::hash<std::string_view>()(of(a)); }
    bool operator()(const auto& a, const auto& b) const { return of(a) == of(b); }
  };
  using Places = std::unordered_set<std::size_t, Name, Name>;
  Places places_;
};

}  // namespace halfscope::log
