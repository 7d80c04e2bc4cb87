// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/python_literal.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::tensors {

PythonLiteral::PythonLiteral(std::string_view text, std::string place)
    : text_(text), place_(std::move(place)) {}

void PythonLiteral::skip_blanks() {
  while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
}

bool PythonLiteral::next_is(char c) {
  skip_blanks();
  return at_ < text_.size() && text_[at_] == c;
}

bool PythonLiteral::accept(char c) {
  if (!next_is(c)) return false;
  ++at_;
  return true;
}

void PythonLiteral::expect(char c) {
  if (!accept(c)) refuse(fmt::format("'{}'", c));
}

std::string PythonLiteral::string() {
  skip_blanks();
  const char quote = at_ < text_.size() ? text_[at_] : '\0';
  if (quote != '\'' && quote != '"') refuse("a string");
  const std::size_t end = text_.find(quote, at_ + 1);
  if (end == text_.npos) refuse("a string that ends");
  const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
  if (inside.find('\\') != inside.npos) refuse("a string without escapes");
  at_ = end + 1;
  return std::string(inside);
}

bool PythonLiteral::boolean() {
  skip_blanks();
  for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true},
                                    std::pair<std::string_view, bool>{"False", false}}) {
    if (!text_.substr(at_).starts_with(word)) continue;
    at_ += word.size();
    return value;
  }
  refuse("True or False");
}

std::uint64_t PythonLiteral::number() {
  skip_blanks();
  std::uint64_t value = 0;
  const char* const start = text_.data() + at_;
  const auto [stop, error] = std::from_chars(start, text_.data() + text_.size(), value);
  if (error != std::errc()) refuse("a whole number from 0 to 2^64 - 1");
  at_ += static_cast<std::size_t>(stop - start);
  if (at_ < text_.size() && text_[at_] == 'L') ++at_;
  return value;
}

std::vector<std::uint64_t> PythonLiteral::tuple() {
  std::vector<std::uint64_t> numbers;
  expect('(');
  while (!accept(')')) {
    numbers.push_back(number());
    if (accept(',')) continue;
    if (numbers.size() == 1) refuse("','");  // (3) is a number in brackets
    expect(')');
    break;
  }
  return numbers;
}

std::string_view PythonLiteral::list() {
  skip_blanks();
  const std::size_t start = at_;
  expect('[');
  for (std::size_t open = 1; open > 0;) {
    skip_blanks();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '\'' || c == '"') {
      (void)string();
      continue;
    }
    if (c == '\0') refuse("a list that ends");
    if (c == '[') ++open;
    if (c == ']') --open;
    ++at_;
  }
  return text_.substr(start, at_ - start);
}

void PythonLiteral::end() {
  skip_blanks();
  if (at_ != text_.size()) refuse("the header's end");
}

void PythonLiteral::refuse(std::string_view wanted) const {
  const std::string found =
      at_ < text_.size() ? fmt::format("'{}'", log::printable(text_.substr(at_, 1))) : "the end";
  throw log::BadInput(fmt::format(
      "{}: the NPY header holds {} at byte {} of {}, expected {}; the file is damaged, write "
      "it again",
      place_, found, at_, text_.size(), wanted));
}

}  // namespace halfscope::analyzers::readers::tensors
