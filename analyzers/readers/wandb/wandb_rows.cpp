// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/wandb/wandb_rows.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::wandb {
namespace {

constexpr std::size_t kMostBins = std::size_t{1} << 16;     // W&B has 512 at most
constexpr std::size_t kMostNumbers = std::size_t{1} << 20;  // of one object
constexpr std::size_t kDeepest = 16;                        // of objects whose values are kept
constexpr std::size_t kLongestString = std::size_t{1} << 24;
constexpr std::size_t kShown = 40;  // of what is wrong

/// JSON text in which NaN, Infinity and -Infinity, outside of strings, are strings.
class JsonText {
 public:
  explicit JsonText(std::string_view text) : text_(text) { look(); }

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

/// An object that is open.
struct Object {
  std::string prefix;  ///< of its values' names
  std::string key;     ///< of the value that comes
  bool is_histogram = false;
  std::vector<std::pair<std::string, double>> numbers;
  common::Histogram histogram;
};

double number_of(const Object& packed, std::string_view key) {
  for (const auto& [name, value] : packed.numbers) {
    if (name == key) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// "packedBins": what W&B's server makes of bins of one width.
std::vector<double> edges_of(const Object& packed) {
  const double min = number_of(packed, "min"), size = number_of(packed, "size");
  const double count = number_of(packed, "count");
  std::vector<double> edges;
  if (!(count >= 0 && count < static_cast<double>(kMostBins))) return edges;
  const auto bins = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i <= bins; ++i) edges.push_back(min + static_cast<double>(i) * size);
  return edges;
}

/// Builds rows from a parser's events; of everything else it counts how deep it is.
class RowBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit RowBuilder(const std::function<void(HistoryRow&&)>& visit) : visit_(visit) {}

  /// Where the parser stopped, and why; empty where it did not.
  const std::string& error() const { return error_; }

  bool null() override { return true; }
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
    if (skipped_ > 0 || in_list_ || open_.empty()) return true;
    if (open_.back().key == "_type") open_.back().is_histogram = text == "histogram";
    if (open_.size() == 1 && open_.back().key == "_step") {
      row_.odd_step = "'" + text.substr(0, kShown) + "'";
    }
    return true;
  }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    if (skipped_ > 0 || in_list_ || open_.size() == kDeepest) {
      ++skipped_;
      return true;
    }
    Object object;
    if (!open_.empty()) object.prefix = open_.back().prefix + open_.back().key + '.';
    open_.push_back(std::move(object));
    return true;
  }
  bool key(string_t& name) override {
    if (skipped_ == 0) open_.back().key = name;
    return true;
  }
  bool end_object() override {
    if (skipped_ > 0) {
      --skipped_;
      return true;
    }
    const Object object = std::move(open_.back());
    open_.pop_back();
    close(object);
    return true;
  }

  bool start_array(std::size_t) override {
    if (skipped_ > 0 || in_list_ || (open_.empty() && in_rows_)) {
      ++skipped_;
      return true;
    }
    (open_.empty() ? in_rows_ : in_list_) = true;
    return true;
  }
  bool end_array() override {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      in_list_ = false;
    }
    return true;
  }

  bool parse_error(std::size_t, const std::string& token,
                   const nlohmann::json::exception&) override {
    error_ = "is not JSON at '" + log::printable(token.substr(0, kShown)) + "'";
    return false;
  }

 private:
  bool number(double value) {
    if (skipped_ > 0 || open_.empty()) return true;
    Object& object = open_.back();
    if (!in_list_) {
      if (object.numbers.size() < kMostNumbers) object.numbers.emplace_back(object.key, value);
      return true;
    }
    std::vector<double>* const list = object.key == "values" ? &object.histogram.counts
                                      : object.key == "bins" ? &object.histogram.edges
                                                             : nullptr;
    if (list != nullptr && list->size() <= kMostBins) list->push_back(value);
    return true;
  }

  void close(const Object& object) {
    if (open_.empty()) return finish_row(object);
    Object& parent = open_.back();
    if (object.is_histogram) {
      row_.histograms.emplace_back(parent.prefix + parent.key, object.histogram);
    } else if (parent.key == "packedBins") {
      parent.histogram.edges = edges_of(object);
    } else {
      add_scalars(object);
    }
  }

  void finish_row(const Object& object) {
    add_scalars(object);
    for (const auto& [name, value] : object.numbers) {
      if (name != "_step") continue;
      if (std::abs(value) < 0x1p53 && value == std::trunc(value)) {
        row_.step = static_cast<std::int64_t>(value);
      } else {
        row_.odd_step = fmt::format("{}", value);
      }
    }
    visit_(std::exchange(row_, HistoryRow{}));
  }

  void add_scalars(const Object& object) {
    for (const auto& [name, value] : object.numbers) {
      row_.scalars.emplace_back(object.prefix + name, value);
    }
  }

  const std::function<void(HistoryRow&&)>& visit_;
  HistoryRow row_;
  std::vector<Object> open_;
  std::uint64_t skipped_ = 0;  // arrays and objects inside of one that is not kept
  bool in_rows_ = false;       // in the array of all rows
  bool in_list_ = false;       // in an array of a row
  std::string error_;
};

/// One JSON text. Returns what is wrong with it; empty where nothing is.
std::string parse(std::string_view text, const std::function<void(HistoryRow&&)>& visit) {
  RowBuilder builder(visit);
  // The parser is not recursive: what is nested takes a bit of memory a level.
  const auto has = [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  };
  if (text.size() <= kLongestString && !has("NaN") && !has("Infinity")) {  // twice as fast
    nlohmann::json::sax_parse(text, &builder);
  } else {
    JsonText json(text);
    nlohmann::json::sax_parse(JsonIterator(&json), JsonIterator(nullptr), &builder);
  }
  return builder.error();
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

/// Whether the file has one object a line.
bool has_lines_of_objects(const log::OpenPath& file) {
  common::TextLines lines(file);
  auto line = lines.next();
  while (line && is_blank(*line)) line = lines.next();
  if (!line) return true;
  const std::size_t first = line->find_first_not_of(" \t");
  const std::size_t last = line->find_last_not_of(" \t");
  return (*line)[first] == '{' && (*line)[last] == '}';
}

}  // namespace

void for_each_history_row(const log::OpenPath& file, const std::function<void(HistoryRow&&)>& visit,
                          common::BadLines& bad, const frames::Progress& progress,
                          std::uint64_t before, std::uint64_t in_all) {
  if (has_lines_of_objects(file)) {
    common::TextLines lines(file, progress, before, in_all);
    const std::function<void(HistoryRow &&)> visit_line = [&](HistoryRow&& row) {
      row.line = lines.number();
      visit(std::move(row));
    };
    while (const auto line = lines.next()) {
      if (is_blank(*line)) continue;
      const std::string why = parse(*line, visit_line);
      if (!why.empty()) bad.add(lines.number(), why);
    }
    return;
  }
  const log::MappedFile whole(file);
  const auto bytes = whole.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string why = parse(text, visit);
  if (!why.empty()) bad.add(1, why + "; the rest is not read");
  if (progress) progress(before + text.size(), in_all);
}

}  // namespace halfscope::analyzers::readers::wandb
