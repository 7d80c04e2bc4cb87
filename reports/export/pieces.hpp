// SPDX-License-Identifier: Apache-2.0
// Streaming of JSON text. Included by the files that write JSON.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "reports/export/json.hpp"

namespace halfscope::reports::exports {

/// Collects text and passes it on in pieces, so that long arrays are never in memory as a whole. An
/// opened object must have a field: further arrays and fields begin with a comma. flush() must be
/// called at the end.
class Pieces {
 public:
  explicit Pieces(const WriteText& write) : write_(write) {}
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  ~Pieces() = default;

  void add(std::string_view text) {
    constexpr std::size_t kPiece = 1 << 16;
    text_ += text;
    if (text_.size() >= kPiece) flush();
  }
  void flush() {
    write_(text_);
    text_.clear();
  }
  /// Adds the field `"name":[...]`. `fill` adds the elements with add_element().
  template <class Fill>
  void array(std::string_view name, const Fill& fill) {
    add(fmt::format(",\"{}\":[", name));
    const bool outer = std::exchange(first_, true);
    fill();
    first_ = outer;
    add("]");
  }
  void add_element(std::string_view text) {
    if (!first_) text_ += ',';
    first_ = false;
    add(text);
  }
  /// Adds the same element `times` times.
  void repeat(const nlohmann::ordered_json& value, std::size_t times) {
    const std::string text = json_text(value);
    for (std::size_t i = 0; i < times; ++i) add_element(text);
  }
  void element(std::int64_t value) { add_element(fmt::format_int(value).c_str()); }
  /// Adds an object as an element and keeps it open for further fields.
  void open_element(const nlohmann::ordered_json& object) {
    if (!std::exchange(first_, false)) text_ += ',';
    open(object);
  }
  void close() { add("}"); }
  /// Adds an object and keeps it open for further fields.
  void open(const nlohmann::ordered_json& object) {
    std::string text = json_text(object);
    text.pop_back();
    add(text);
  }
  /// Adds further fields to the open object.
  void fields(const nlohmann::ordered_json& object) {
    const std::string text = json_text(object);
    if (!object.empty()) add("," + text.substr(1, text.size() - 2));
  }

 private:
  const WriteText& write_;
  std::string text_;
  bool first_ = true;
};

}  // namespace halfscope::reports::exports
