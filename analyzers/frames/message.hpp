// SPDX-License-Identifier: Apache-2.0
// Messages that name options: the command line shows an option's flag, Python its argument.
// Notes from reading a log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::frames {

/// Options that a user can pass with a log. message.cpp has their spellings.
enum class Option : std::uint8_t {
  amax,
  as,
  assume_constant_between,
  lines,
  lr,
  recorded_scale,
  role,
  step,
  subnormals,
  tensor
};

/// One line of text that can be shown in Python's spelling. Composed as text + Option::step + text.
class Message {
 public:
  Message() = default;
  // Implicit conversions, so that `+` joins text and options.
  Message(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  Message(const char* text) : text_(text) {}             // NOLINT(google-explicit-constructor)
  Message(Option option);                                // NOLINT(google-explicit-constructor)
  /// An option with its value. `argument` is the value in Python: "--amax FILE", "amax=[...]".
  Message(Option option, std::string_view value, std::string_view argument);
  Message(Option option, std::string_view value) : Message(option, value, value) {}

  /// The text as the command line shows it.
  const std::string& text() const { return text_; }
  operator const std::string&() const { return text_; }  // NOLINT(google-explicit-constructor)
  std::string in_python() const;

  Message& operator+=(const Message& more);
  bool operator==(const Message&) const = default;

 private:
  struct Mention {
    std::size_t at, length;  ///< the option's position and length in text_
    Option option;
    std::string argument;  ///< the option's value in Python
    bool operator==(const Mention&) const = default;
  };
  std::string text_;
  std::vector<Mention> mentions_;
};

inline Message operator+(Message message, const Message& more) { return message += more; }

/// "--role GLOB=ROLE"; in Python "roles={GLOB: ROLE}".
Message role_option();
/// "--role '*=weight'"; in Python "roles={'*': 'weight'}".
Message role_option(std::string_view glob, std::string_view role);

/// "--as bf16"; in Python "read_as='bf16'".
Message as_bf16();

/// Error for input that cannot be used without an option. The message names the option.
class InputNeedsOption : public log::BadInput {
 public:
  explicit InputNeedsOption(Message message)
      : BadInput(message.text()), message_(std::make_shared<const Message>(std::move(message))) {}
  const Message& message() const { return *message_; }

 private:
  std::shared_ptr<const Message> message_;  // shared, since copying an exception must not throw
};

/// Error for an option that is invalid, or that matches nothing in the log. The command line exits
/// as for an unknown argument.
class BadOption : public InputNeedsOption {
 public:
  using InputNeedsOption::InputNeedsOption;
};

/// Returns the message of any bad input. It names options if `error` is an InputNeedsOption.
Message message_of(const log::BadInput& error);

/// Notes such as skipped tensors, assumed roles and cut tails: in order of arrival, none twice.
class Notes {
 public:
  Notes() = default;
  Notes(std::initializer_list<Message> notes) { add_all(notes); }
  void add(Message note) {
    if (known_.insert(note.text()).second) all_.push_back(std::move(note));
  }
  /// `more`: a range of messages or strings.
  void add_all(const auto& more) {
    for (const auto& note : more) add(note);
  }
  void clear() { *this = {}; }

  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  const Message& front() const { return all_.front(); }
  const Message& operator[](std::size_t i) const { return all_[i]; }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  bool operator==(const Notes& other) const { return all_ == other.all_; }

 private:
  std::vector<Message> all_;
  std::unordered_set<std::string> known_;
};

}  // namespace halfscope::analyzers::frames
