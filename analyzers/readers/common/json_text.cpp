// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::common {
namespace {

constexpr std::size_t kLongestString = std::size_t{1} << 24;
constexpr std::size_t kShown = 40;  // of what is wrong

/// JSON text in which NaN, Infinity and -Infinity, outside of strings, are strings.
class JsonText {
 public:
  explicit JsonText(std::string_view text) : text_(text) { look(); }

  /// Of the text that was given.
  std::size_t place() const { return at_; }
  bool at_end() const { return instead_.empty() && at_ >= text_.size(); }
  char current() const { return instead_.empty() ? text_[at_] : instead_.front(); }
  void advance() {
    if (!instead_.empty()) {
      instead_.remove_prefix(1);
    } else {
      step();
    }
    if (instead_.empty()) look();
  }

 private:
  void step() {
    const char c = text_[at_++];
    if (!in_string_) {
      in_string_ = c == '"';
      length_ = 0;
      return;
    }
    // Such a string would be held as a whole.
    if (++length_ > kLongestString) text_ = text_.substr(0, at_);
    if (escaped_ || c != '"') {
      escaped_ = !escaped_ && c == '\\';
    } else {
      in_string_ = false;
    }
  }

  /// Where one of the words begins, what is read in its place.
  void look() {
    if (in_string_ || at_ >= text_.size()) return;
    const char c = text_[at_];
    if (c != 'N' && c != 'I' && c != '-') return;
    for (const std::string_view word : {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""}) {
      const std::string_view bare = word.substr(1, word.size() - 2);
      if (!text_.substr(at_).starts_with(bare)) continue;
      at_ += bare.size();
      instead_ = word;
      return;
    }
  }

  std::string_view text_, instead_;
  std::size_t at_ = 0, length_ = 0;
  bool in_string_ = false, escaped_ = false;
};

/// For nlohmann::json, which copies iterators: all copies share their place.
class JsonIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit JsonIterator(JsonText* text) : text_(text) {}
  char operator*() const { return text_->current(); }
  JsonIterator& operator++() {
    text_->advance();
    return *this;
  }
  friend bool operator==(const JsonIterator& a, const JsonIterator& b) {
    return a.done() == b.done();
  }
  friend bool operator!=(const JsonIterator& a, const JsonIterator& b) { return !(a == b); }

 private:
  bool done() const { return text_ == nullptr || text_->at_end(); }
  JsonText* text_;
};

/// Hands a parser's events on.
class Sax : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Sax(JsonEvents& events) : events_(events) {}

  /// Where the parser stopped, and why; empty where it did not.
  const std::string& error() const { return error_; }
  /// The byte behind what is wrong, of what was parsed.
  std::size_t place() const { return place_; }

  bool null() override {
    events_.null();
    return !events_.done();
  }
  bool boolean(bool value) override { return number(value ? 1 : 0); }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t& text) override {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text == "NaN") return number(std::numeric_limits<double>::quiet_NaN());
    if (text == "Infinity") return number(kInfinity);
    if (text == "-Infinity") return number(-kInfinity);
    events_.text(text);
    return !events_.done();
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    events_.start_object();
    return !events_.done();
  }
  bool key(string_t& name) override {
    events_.key(name);
    return !events_.done();
  }
  bool end_object() override {
    events_.end_object();
    return !events_.done();
  }
  bool start_array(std::size_t) override {
    events_.start_array();
    return !events_.done();
  }
  bool end_array() override {
    events_.end_array();
    return !events_.done();
  }
  bool parse_error(std::size_t place, const std::string& token,
                   const nlohmann::json::exception&) override {
    place_ = place;
    error_ = "is not JSON at '" + log::printable(token.substr(0, kShown)) + "'";
    return false;
  }

 private:
  bool number(double value) {
    events_.number(value);
    return !events_.done();
  }

  JsonEvents& events_;
  std::string error_;
  std::size_t place_ = 0;
};

/// " in line 3, byte 5 of it": the last byte before `place`.
std::string place_text(std::string_view text, std::size_t place) {
  const std::string_view before = text.substr(0, std::min(place, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;
  const std::size_t byte = std::max<std::size_t>(before.size() - begin, 1);
  return lines == 0 ? fmt::format(", byte {}", byte)
                    : fmt::format(" in line {}, byte {} of it", lines + 1, byte);
}

}  // namespace

std::string read_json(std::string_view text, JsonEvents& events) {
  Sax sax(events);
  const auto has = [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  };
  if (text.size() <= kLongestString && !has("NaN") && !has("Infinity")) {  // twice as fast
    nlohmann::json::sax_parse(text, &sax);
    return sax.error().empty() ? "" : sax.error() + place_text(text, sax.place());
  }
  JsonText json(text);
  nlohmann::json::sax_parse(JsonIterator(&json), JsonIterator(nullptr), &sax);
  return sax.error().empty() ? "" : sax.error() + place_text(text, json.place());
}

}  // namespace halfscope::analyzers::readers::common
