// SPDX-License-Identifier: Apache-2.0
// Values by tag, for steps that mostly have none.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "halfscope/table/rare.hpp"

namespace halfscope::log {

/// A map that takes only a pointer while empty, since a log may have a million steps.
class TagValues {
 public:
  using Map = std::map<std::string, double>;
  TagValues() = default;
  TagValues(std::initializer_list<Map::value_type> values) : TagValues(Map(values)) {}
  TagValues(Map values) {  // NOLINT(google-explicit-constructor): a conversion
    if (!values.empty()) map_.set() = std::move(values);
  }

  const Map& map() const { return *map_; }
  Map::const_iterator begin() const { return map().begin(); }
  Map::const_iterator end() const { return map().end(); }
  bool empty() const { return map().empty(); }
  std::size_t size() const { return map().size(); }
  bool contains(const std::string& tag) const { return map().contains(tag); }
  Map::const_iterator find(const std::string& tag) const { return map().find(tag); }
  double at(const std::string& tag) const { return map().at(tag); }
  double& operator[](std::string tag) { return map_.set()[std::move(tag)]; }
  void insert_or_assign(std::string tag, double value) { (*this)[std::move(tag)] = value; }
  void clear() { map_ = {}; }
  friend bool operator==(const TagValues& a, const TagValues& b) { return a.map() == b.map(); }

 private:
  Rare<Map> map_;
};

}  // namespace halfscope::log
