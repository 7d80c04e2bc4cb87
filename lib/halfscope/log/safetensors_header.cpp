// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/safetensors_header.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "halfscope/log/error.hpp"
#include "halfscope/log/name_index.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::log {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse_text(std::string_view document, std::size_t at, const std::string& file) {
  const std::string found =
      at < document.size() ? fmt::format("'{}'", printable(document.substr(at, 1))) : "its end";
  throw BadInput(fmt::format(
      "{}: the header is not JSON: found {} at byte {} of {}, expected a JSON object in "
      "UTF-8; the file is damaged or not a safetensors file, write it again",
      file, found, at, document.size()));
}

/// Receives the parser's events and rejects the first invalid one. Depths: 1 the file's object, 2 a
/// tensor's or the metadata's, 3 an array of numbers; there is no depth 4.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  HeaderReader(std::string_view document, const std::string& file) : json_(document), file_(file) {}
  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("a boolean"); }
  bool number_integer(number_integer_t value) override { refuse(fmt::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { refuse(text); }
  bool binary(binary_t&) override { refuse("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ != 3) refuse(fmt::to_string(value));
    (field_ == Field::shape ? header_.entries.back().shape : offsets_).push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata_) {
      if (!header_.metadata.emplace(key_, std::move(value)).second) refuse_twice(key_);
    } else if (depth_ == 2 && field_ == Field::dtype) {
      header_.entries.back().dtype = std::move(value);
    } else {
      refuse("a string");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ > 1) refuse("an object");
    ++depth_;
    seen_ = 0;
    return true;
  }

  bool start_array(std::size_t) override {
    const bool wanted = depth_ == 2 && !in_metadata_ && field_ != Field::dtype;
    if (!wanted) refuse("an array");
    ++depth_;
    return true;
  }

  bool key(string_t& name) override {
    key_ = std::move(name);
    if (depth_ == 1) {
      start_entry();
    } else if (!in_metadata_) {
      start_field();
    }
    return true;
  }

  bool end_array() override {
    --depth_;
    return true;
  }

  bool end_object() override {
    if (depth_ == 2 && !in_metadata_) finish_entry();
    --depth_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    refuse_text(json_, position == 0 ? 0 : position - 1, file_);  // the position counts from one
  }

 private:
  enum class Field : std::uint8_t { dtype, shape, data_offsets };

  void start_entry() {
    in_metadata_ = key_ == kSafetensorsMetadata;
    if (in_metadata_ ? has_metadata_ : names_.find(key_).has_value()) refuse_twice(key_);
    has_metadata_ = has_metadata_ || in_metadata_;
    if (in_metadata_) return;
    header_.entries.emplace_back().name = key_;
    names_.add(header_.entries.size() - 1);
    offsets_.clear();
  }

  void start_field() {
    static constexpr std::pair<std::string_view, Field> kFields[] = {
        {"dtype", Field::dtype}, {"shape", Field::shape}, {"data_offsets", Field::data_offsets}};
    for (const auto& [name, field] : kFields) {
      if (key_ != name) continue;
      const unsigned bit = 1u << static_cast<unsigned>(field);
      if ((seen_ & bit) != 0) refuse_twice(key_);
      seen_ |= bit;
      field_ = field;
      return;
    }
    throw BadInput(
        fmt::format("{}: holds the field '{}', expected dtype, shape and data_offsets; {}", place(),
                    shown(key_), kAdvice));
  }

  void finish_entry() {
    if (seen_ != 7) {
      throw BadInput(fmt::format("{}: lacks {}, expected dtype, shape and data_offsets; {}",
                                 place(),
                                 (seen_ & 1) == 0   ? "dtype"
                                 : (seen_ & 2) == 0 ? "shape"
                                                    : "data_offsets",
                                 kAdvice));
    }
    if (offsets_.size() != 2) {
      throw BadInput(
          fmt::format("{}: data_offsets holds {} numbers, expected 2 (begin and end); {}", place(),
                      offsets_.size(), kAdvice));
    }
    header_.entries.back().begin = offsets_[0];
    header_.entries.back().end = offsets_[1];
  }

  std::string place() const {
    if (depth_ == 0) return fmt::format("{}: header", file_);
    if (in_metadata_) return fmt::format("{}: {}", file_, kSafetensorsMetadata);
    if (header_.entries.empty()) return fmt::format("{}: header", file_);
    return place_text(file_, header_.entries.back().name);
  }

  std::string_view wanted() const {
    if (depth_ == 0) return "an object of tensors";
    if (depth_ == 3) return "whole numbers from 0 to 2^64 - 1";
    if (in_metadata_) return depth_ == 1 ? "an object of strings" : "a string";
    if (depth_ == 1) return "an object with dtype, shape and data_offsets";
    return field_ == Field::dtype ? "a string" : "an array of whole numbers";
  }

  [[noreturn]] void refuse(std::string_view found) const {
    const std::string field = depth_ < 2 ? std::string() : fmt::format(" for '{}'", shown(key_));
    throw BadInput(fmt::format("{}: holds {}{}, expected {}; {}", place(), shown(found), field,
                               wanted(), kAdvice));
  }

  [[noreturn]] void refuse_twice(std::string_view name) const {
    throw BadInput(fmt::format("{}: the header holds '{}' twice, expected every key once; {}",
                               file_, shown(name), kAdvice));
  }

  static std::string shown(std::string_view text) { return printable(text.substr(0, 200)); }

  static constexpr std::string_view kAdvice = "the file is damaged, write it again";

  std::string_view json_;
  const std::string& file_;
  SafetensorsHeader header_;
  NameIndex<std::vector<SafetensorsEntry>> names_{header_.entries};
  std::vector<std::uint64_t> offsets_;
  std::string key_;
  int depth_ = 0;
  unsigned seen_ = 0;  ///< fields of this tensor so far, one bit each
  Field field_ = Field::dtype;
  bool in_metadata_ = false, has_metadata_ = false;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view document, const std::string& file) {
  if (document.empty() || document.front() != '{') refuse_text(document, 0, file);
  // The parser stops at a NUL character and would not see what follows.
  const std::size_t nul = document.find('\0');
  if (nul != std::string_view::npos) refuse_text(document, nul, file);
  HeaderReader reader(document, file);
  Json::sax_parse(document.begin(), document.end(), &reader);
  return reader.take();
}

}  // namespace halfscope::log
