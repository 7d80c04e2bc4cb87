// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/message.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halfscope::analyzers::frames {
namespace {

struct Spelling {
  Option option;
  std::string_view flag, argument;
  std::string_view alone;  ///< Python value used if a message has no value
};
constexpr Spelling kSpellings[] = {
    {Option::amax, "--amax", "amax", ""},
    {Option::as, "--as", "read_as", ""},
    {Option::assume_constant_between, "--assume-constant-between", "assume_constant_between",
     "True"},
    {Option::lines, "--lines", "lines", ""},
    {Option::lr, "--lr", "learning_rate", ""},
    {Option::recorded_scale, "--recorded-scale", "recorded_scale", ""},
    {Option::role, "--role", "roles", ""},
    {Option::step, "--step", "steps", "slice(first, end)"},
    {Option::subnormals, "--subnormals", "subnormals", ""},
    {Option::tensor, "--tensor", "tensor", ""},
};

const Spelling& spelling_of(Option option) {
  return *std::ranges::find(kSpellings, option, &Spelling::option);
}

}  // namespace

Message::Message(Option option) : text_(spelling_of(option).flag) {
  mentions_.push_back({0, text_.size(), option, std::string(spelling_of(option).alone)});
}

Message::Message(Option option, std::string_view value, std::string_view argument)
    : text_(fmt::format("{} {}", spelling_of(option).flag, value)) {
  mentions_.push_back({0, text_.size(), option, std::string(argument)});
}

std::string Message::in_python() const {
  std::string out;
  std::size_t from = 0;
  for (const Mention& mention : mentions_) {
    out += text_.substr(from, mention.at - from);
    out += fmt::format("{}={}", spelling_of(mention.option).argument, mention.argument);
    from = mention.at + mention.length;
  }
  return out + text_.substr(from);
}

Message& Message::operator+=(const Message& more) {
  for (Mention mention : more.mentions_) {
    mention.at += text_.size();
    mentions_.push_back(std::move(mention));
  }
  text_ += more.text_;
  return *this;
}

Message role_option() { return {Option::role, "GLOB=ROLE", "{GLOB: ROLE}"}; }

Message role_option(std::string_view glob, std::string_view role) {
  return {Option::role, fmt::format("'{}={}'", glob, role),
          fmt::format("{{'{}': '{}'}}", glob, role)};
}

Message as_bf16() { return {Option::as, "bf16", "'bf16'"}; }

Message message_of(const log::BadInput& error) {
  const auto* const with_options = dynamic_cast<const InputNeedsOption*>(&error);
  return with_options == nullptr ? Message(error.what()) : with_options->message();
}

}  // namespace halfscope::analyzers::frames
