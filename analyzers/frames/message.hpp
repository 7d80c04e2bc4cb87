// SPDX-License-Identifier: Apache-2.0
// Messages that name an option: the command line shows its flag, Python its argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::frames {

/// What a user can give with a log. message.cpp spells each.
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

/// One line of text that knows where it names options. Made of pieces: text + Option::step + text.
class Message {
 public:
  Message() = default;
  // Text and options are messages by themselves, so that `+` joins them.
  Message(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  Message(const char* text) : text_(text) {}             // NOLINT(google-explicit-constructor)
  Message(Option option);                                // NOLINT(google-explicit-constructor)
  /// An option with its value, which Python writes as `argument`: "--amax FILE", "amax=[...]".
  Message(Option option, std::string_view value, std::string_view argument);
  Message(Option option, std::string_view value) : Message(option, value, value) {}

  /// As the command line shows it.
  const std::string& text() const { return text_; }
  operator const std::string&() const { return text_; }  // NOLINT(google-explicit-constructor)
  std::string in_python() const;

  Message& operator+=(const Message& more);
  bool operator==(const Message&) const = default;

 private:
  struct Mention {
    std::size_t at, length;  ///< of the flag in the text
    Option option;
    std::string argument;  ///< the value in Python
    bool operator==(const Mention&) const = default;
  };
  std::string text_;
  std::vector<Mention> mentions_;
};

inline Message operator+(Message message, const Message& more) { return message += more; }

/// "--role GLOB=ROLE", "roles={GLOB: ROLE}"
Message role_option();
/// "--role '*=weight'", "roles={'*': 'weight'}"
Message role_option(std::string_view glob, std::string_view role);

/// "--as bf16", "read_as='bf16'"
Message as_bf16();

/// Input that cannot be used as it is; the option that helps is in the message.
class OptionHelps : public log::BadInput {
 public:
  explicit OptionHelps(Message message)
      : BadInput(message.text()), message_(std::make_shared<const Message>(std::move(message))) {}
  const Message& message() const { return *message_; }

 private:
  std::shared_ptr<const Message> message_;  // an exception's copy must not throw
};

/// An option that cannot mean anything, or nothing in the log that it is given with: the command
/// line ends as for words that it does not know.
class BadOption : public OptionHelps {
 public:
  using OptionHelps::OptionHelps;
};

/// The message of any bad input, with the options that it names.
Message message_of(const log::BadInput& error);

}  // namespace halfscope::analyzers::frames
