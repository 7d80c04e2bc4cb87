// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "analyzers/readers/common/text_lines.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::common {
namespace {

constexpr std::size_t kLongestText = 512;  // bytes of a string that are kept
constexpr std::size_t kDeepest = 24;
constexpr std::size_t kMostInList = std::size_t{1} << 16;
constexpr std::size_t kMostNumbers = std::size_t{1} << 20;  // in one object
constexpr std::size_t kShown = 40;                          // bytes of an error

/// Stands for NaN in a string. No string of a log is a single control character.
constexpr std::string_view kNan = "\x7f";

/// Replaces NaN, Infinity and -Infinity outside of strings by strings of the same length, which
/// JSON allows.
std::string with_quoted_words(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"NaN", "\"\x7f\""}, {"Infinity", "\"inf\"   "}, {"-Infinity", "\"-inf\"   "}};
  std::string quoted(text);
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\') ++i;
    if (in_string) continue;
    for (const auto& [word, instead] : kWords) {
      if (text[i] != word.front() || text.substr(i, word.size()) != word) continue;
      quoted.replace(i, word.size(), instead);
      i += word.size() - 1;
      break;
    }
  }
  return quoted;
}

/// Builds objects from a parser's events.
class ObjectReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ObjectReader(const JsonVisitor& visit) : visit_(visit) {}

  /// The error, without its place; empty if there is none.
  const std::string& error() const { return error_; }
  /// The number of bytes parsed up to the error.
  std::size_t place() const { return place_; }

  bool null() override { return end_value(); }
  bool boolean(bool value) override { return number(value ? 1 : 0); }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t& text) override {
    if (text == kNan) return number(std::numeric_limits<double>::quiet_NaN());
    if (const auto value = number_in(text)) return number(*value);
    if (skipped_ == 0 && !open_.empty() && !open_.back().is_array) {
      open_.back().object.texts.emplace_back(open_.back().key, text.substr(0, kLongestText));
    }
    return end_value();
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return start(false); }
  bool start_array(std::size_t) override { return start(true); }
  bool key(string_t& name) override {
    if (skipped_ == 0) open_.back().key = name;
    return true;
  }
  bool end_object() override {
    if (skipped_ > 0) return end_skipped();
    const JsonLevel closed = std::move(open_.back());
    open_.pop_back();
    return visit_(open_, closed.object) && end_value();
  }
  bool end_array() override {
    if (skipped_ > 0) return end_skipped();
    JsonLevel closed = std::move(open_.back());
    open_.pop_back();
    if (!open_.empty() && !open_.back().is_array) {
      open_.back().object.lists.emplace_back(open_.back().key, std::move(closed.list));
    }
    return end_value();
  }
  bool parse_error(std::size_t place, const std::string& token,
                   const nlohmann::json::exception&) override {
    place_ = place;
    error_ = "is not JSON at '" + log::printable(token.substr(0, kShown)) + "'";
    return false;
  }

 private:
  bool number(double value) {
    if (skipped_ > 0 || open_.empty()) return true;
    JsonLevel& in = open_.back();
    if (in.is_array && in.list.size() <= kMostInList) in.list.push_back(value);
    if (!in.is_array && in.object.numbers.size() < kMostNumbers) {
      in.object.numbers.emplace_back(in.key, value);
    }
    return end_value();
  }
  bool start(bool is_array) {
    if (skipped_ > 0 || open_.size() == kDeepest) {
      ++skipped_;
    } else {
      open_.emplace_back().is_array = is_array;
    }
    return true;
  }
  bool end_skipped() { return --skipped_ > 0 || end_value(); }
  bool end_value() {
    if (skipped_ == 0 && !open_.empty()) ++open_.back().index;
    return true;
  }

  const JsonVisitor& visit_;
  std::vector<JsonLevel> open_;
  std::uint64_t skipped_ = 0;  ///< open levels beyond kDeepest
  std::string error_;
  std::size_t place_ = 0;
};

/// The last byte before `place`, as " in line 3, byte 5 of it".
std::string place_text(std::string_view text, std::size_t place) {
  const std::string_view before = text.substr(0, std::min(place, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;
  const std::size_t byte = std::max<std::size_t>(before.size() - begin, 1);
  return lines == 0 ? fmt::format(", byte {}", byte)
                    : fmt::format(" in line {}, byte {} of it", lines + 1, byte);
}

}  // namespace

std::string read_json(std::string_view text, const JsonVisitor& visit) {
  ObjectReader reader(visit);
  const auto has = [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  };
  if (has("NaN") || has("Infinity")) {
    nlohmann::json::sax_parse(with_quoted_words(text), &reader);
  } else {
    nlohmann::json::sax_parse(text, &reader);
  }
  return reader.error().empty() ? "" : reader.error() + place_text(text, reader.place());
}

}  // namespace halfscope::analyzers::readers::common
