// SPDX-License-Identifier: Apache-2.0
// The interface of Pieces (pieces.hpp), building JSON values instead of text: a template function
// can write to both.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halfscope::reports::exports {

/// Builds values. An object is open until close(). take() returns the top level's closed objects.
class Tree {
 public:
  template <class Fill>
  void array(std::string_view name, const Fill& fill) {
    lists_.push_back(Json::array());
    fill();
    objects_.back()[std::string(name)] = std::move(lists_.back());
    lists_.pop_back();
  }
  void repeat(const nlohmann::ordered_json& value, std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) lists_.back().push_back(value);
  }
  void element(std::int64_t value) { lists_.back().push_back(value); }
  void open_element(const nlohmann::ordered_json& object) { objects_.push_back(object); }
  void open(const nlohmann::ordered_json& object) { open_element(object); }
  void fields(const nlohmann::ordered_json& object) { objects_.back().update(object); }
  void close() {
    lists_.back().push_back(std::move(objects_.back()));
    objects_.pop_back();
  }
  nlohmann::ordered_json take() { return std::exchange(lists_.front(), Json::array()); }

 private:
  using Json = nlohmann::ordered_json;
  std::vector<Json> objects_;                  ///< open objects, the outermost first
  std::vector<Json> lists_ = {Json::array()};  ///< open lists; the first is the top level
};

}  // namespace halfscope::reports::exports
