// SPDX-License-Identifier: Apache-2.0
// Roles by the words that people and frameworks give tags. Sources: `wandb.watch` writes
// "gradients/" and "parameters/" before a parameter's name; Lightning, Hugging Face and
// hand-written loops write NAME.grad, grad/NAME, grads/NAME; Keras writes LAYER/kernel_0 and
// LAYER/bias_0.
#include <array>
#include <string>
#include <utility>

#include "analyzers/readers/common/roles.hpp"

namespace halfscope::analyzers::readers::common {
namespace {

using log::Role;

enum class Word : std::uint8_t {
  gradient,
  activation,
  other_side,
  weight_grad,
  activation_grad,
  weight,
  update,
  state
};

constexpr std::pair<std::string_view, Word> kWords[] = {
    {"grad", Word::gradient},         {"grads", Word::gradient},
    {"gradient", Word::gradient},     {"gradients", Word::gradient},
    {"wgrad", Word::weight_grad},     {"wgrads", Word::weight_grad},
    {"dgrad", Word::activation_grad}, {"dgrads", Word::activation_grad},
    {"activation", Word::activation}, {"activations", Word::activation},
    {"act", Word::activation},        {"acts", Word::activation},
    {"output", Word::other_side},     {"outputs", Word::other_side},
    {"input", Word::other_side},      {"inputs", Word::other_side},
    {"weight", Word::weight},         {"weights", Word::weight},
    {"param", Word::weight},          {"params", Word::weight},
    {"parameter", Word::weight},      {"parameters", Word::weight},
    {"bias", Word::weight},           {"biases", Word::weight},
    {"kernel", Word::weight},         {"update", Word::update},
    {"updates", Word::update},        {"momentum", Word::state},
    {"optimizer", Word::state},
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::optional<Word> find_word(std::string_view word) {
  for (const auto& [text, meaning] : kWords) {
    const bool same = std::equal(word.begin(), word.end(), text.begin(), text.end(),
                                 [](char a, char b) { return (a | 0x20) == b; });
    if (same) return meaning;
  }
  return std::nullopt;
}

/// A known word of a tag: the characters [begin, end).
struct Found {
  Word word;
  std::size_t begin, end;
};
std::vector<Found> words_of(std::string_view tag) {
  std::vector<Found> words;
  for (std::size_t i = 0; i < tag.size();) {
    std::size_t end = i;
    while (end < tag.size() && is_letter(tag[end])) ++end;
    if (const auto word = find_word(tag.substr(i, end - i))) words.push_back({*word, i, end});
    i = end + 1;
  }
  return words;
}

/// "grad_output" and "activation_grad" are one expression, "grad/fc_output" is not.
bool are_one(const Found& a, const Found& b, std::string_view tag) {
  return b.begin == a.end + 1 && (tag[a.end] == '_' || tag[a.end] == '-' || tag[a.end] == ' ');
}

/// The role that a word for gradients names, by the words beside it.
Role gradient_of(const std::vector<Found>& words, std::size_t at, std::string_view tag) {
  const auto is_side = [&](std::size_t i, bool follows) {
    if (words[i].word == Word::activation) return true;
    return follows && words[i].word == Word::other_side;
  };
  if (at > 0 && are_one(words[at - 1], words[at], tag) && is_side(at - 1, false)) {
    return Role::activation_grad;
  }
  if (at + 1 < words.size() && are_one(words[at], words[at + 1], tag) && is_side(at + 1, true)) {
    return Role::activation_grad;
  }
  return Role::weight_grad;
}

}  // namespace

std::optional<Role> role_in_words(std::string_view tag) {
  const std::vector<Found> words = words_of(tag);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].word == Word::weight_grad) return Role::weight_grad;
    if (words[i].word == Word::activation_grad) return Role::activation_grad;
    if (words[i].word == Word::gradient) return gradient_of(words, i, tag);
  }
  for (const Found& found : words) {
    switch (found.word) {
      case Word::activation: return Role::activation;
      case Word::weight: return Role::weight;
      case Word::update: return Role::update;
      case Word::state: return Role::optimizer_state;
      default: break;  // many modules are called "output"
    }
  }
  return std::nullopt;
}

}  // namespace halfscope::analyzers::readers::common
