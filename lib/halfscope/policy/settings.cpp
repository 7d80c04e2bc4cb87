// SPDX-License-Identifier: Apache-2.0
// Settings and state of policies by name: as text, as values, as numbers.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include "halfscope/policy/variant.hpp"

namespace halfscope::policy {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

template <class Names>
std::string list(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// Parses the whole text as a number or as "2^K"; empty if it is neither.
std::optional<double> number_of(std::string_view text) {
  const bool power = text.substr(0, 2) == "2^";
  if (power) text.remove_prefix(2);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return power ? std::exp2(value) : value;
}

bool in_range(double value, Range range) {
  if (!std::isfinite(value)) return false;
  switch (range) {
    case Range::any: return true;
    case Range::positive: return value > 0;
    case Range::non_negative: return value >= 0;
    case Range::count: return value >= 1 && value == std::floor(value) && value <= 0x1p53;
  }
  return false;
}

/// Returns true if a setting is in range after rounding to binary32, in which the framework stores
/// it: a large one would become infinite, and a small positive one may become 0.
bool in_binary32_range(double value, Range range) {
  constexpr double kInfinite = 0x1.ffffffp127;  // this number and all above round to infinity
  return std::abs(value) < kInfinite && in_range(static_cast<float>(value), range);
}

std::string_view wanted(Range range) {
  switch (range) {
    case Range::any: return "a finite number";
    case Range::positive: return "a finite number above 0";
    case Range::non_negative: return "a finite number, 0 or above";
    case Range::count: return "an integer, 1 or above";
  }
  return "";
}

/// Constraints on the value of a setting.
struct Wanted {
  Range range = Range::any;
  std::span<const std::string_view> choices = {};
  Arithmetic arithmetic = Arithmetic::binary64;
};

/// Parses the text of a setting. Throws std::invalid_argument with `what` in the message.
template <class T>
T parse(std::string_view text, const Wanted& want, const std::string& what) {
  const auto found = what + ": found " + quoted(text) + ", expected ";
  const auto require = [&](const std::optional<double>& value, std::string_view or_else) {
    if (!value || !in_range(*value, want.range)) {
      refuse(found + std::string(wanted(want.range)) + std::string(or_else));
    }
    if (want.arithmetic == Arithmetic::binary32 && !in_binary32_range(*value, want.range)) {
      refuse(found + "a number of binary32's range, in which the framework keeps its scale");
    }
  };
  if constexpr (std::is_same_v<T, std::string_view>) {
    const auto match = std::find(want.choices.begin(), want.choices.end(), text);
    if (match == want.choices.end()) refuse(found + "one of " + list(want.choices));
    return *match;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (text == "true" || text == "True" || text == "1") return true;
    if (text == "false" || text == "False" || text == "0") return false;
    refuse(found + "true or false");
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    if (text == "None" || text == "none") return std::nullopt;
    const auto value = number_of(text);
    require(value, ", or None");
    return value;
  } else {
    const auto value = number_of(text);
    require(value, "");
    if (std::is_same_v<T, std::int64_t> && *value != std::floor(*value)) {
      refuse(found + "an integer");
    }
    return static_cast<T>(*value);
  }
}

/// A member of a policy: a setting or a part of its state.
struct Member {
  std::string_view name;
  std::variant<double*, float*, std::int64_t*, bool*, std::optional<double>*, std::string_view*,
               std::vector<double>*>
      value;
  Range range = Range::any;
  std::span<const std::string_view> choices = {};
};

template <class P, std::size_t N>
std::vector<Member> members_of(P& policy, const std::array<Option<P>, N>& options) {
  std::vector<Member> members;
  for (const Option<P>& option : options) {
    Member& member = members.emplace_back();
    member.name = option.name;
    std::visit([&](auto at) { member.value = &(policy.*at); }, option.member);
    member.range = option.range;
    member.choices = option.choices;
  }
  return members;
}

std::vector<Member> settings_in(Policy& policy) {
  return std::visit([](auto& p) { return members_of(p, p.settings()); }, policy.variant());
}
std::vector<Member> state_in(Policy& policy) {
  return std::visit([](auto& p) { return members_of(p, p.state()); }, policy.variant());
}

/// Translates the names that all policies share into the policy's own.
std::string_view own_name(const Info& info, std::string_view key) {
  if (key == "initial_scale" && !info.initial.empty()) return info.initial;
  if (key == "growth_interval" && !info.interval.empty()) return info.interval;
  return key;
}

/// Reports an explicitly given key to the policy, since it may change other defaults.
void tell_given(Policy& policy, std::string_view key) {
  std::visit(
      [&](auto& p) {
        if constexpr (requires { p.given(key); }) p.given(key);
      },
      policy.variant());
}

/// Sets one setting from its text.
void set(Policy& policy, std::string_view key, std::string_view text) {
  const Info& info = info_of(policy);
  tell_given(policy, key);
  std::vector<std::string_view> keys;
  for (const Member& member : settings_in(policy)) {
    keys.push_back(member.name);
    if (member.name != key) continue;
    const auto assign = [&]<class T>(T* value) {
      if constexpr (!std::is_same_v<T, std::vector<double>>) {
        *value = parse<T>(text, {member.range, member.choices, info.arithmetic},
                          "policy " + std::string(info.name) + ": " + std::string(key));
      }
    };
    std::visit(assign, member.value);
    return;
  }
  refuse("policy " + std::string(info.name) + " has no setting " + quoted(key) + "; it has " +
         list(keys));
}

/// Parses "key=value,key=value" and sets the values.
void set_all(Policy& policy, std::string_view text) {
  const Info& info = info_of(policy);
  const std::string what = "policy " + std::string(info.name) + ": ";
  std::vector<std::string_view> seen;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      std::vector<std::string_view> keys;
      for (const Member& member : settings_in(policy)) keys.push_back(member.name);
      refuse(what + "found " + quoted(item) + ", expected key=value; its keys are " + list(keys));
    }
    const std::string_view key = own_name(info, item.substr(0, equals));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      refuse(what + std::string(key) + " is given twice");
    }
    seen.push_back(key);
    set(policy, key, item.substr(equals + 1));
  }
}

template <class T>
Value value_of(const T& member) {
  if constexpr (std::is_same_v<T, std::optional<double>>) {
    return member ? Value(*member) : Value();
  } else if constexpr (std::is_same_v<T, float>) {
    return static_cast<double>(member);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    return Value();  // no setting is a list
  } else {
    return member;
  }
}

std::string text_of(const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return "None";
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* count = std::get_if<std::int64_t>(&value)) return std::to_string(*count);
  if (const auto* word = std::get_if<std::string_view>(&value)) return std::string(*word);
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, std::get<double>(value)).ptr;
  return {digits, end};
}

/// Conversion of a state member to numbers and back.
template <class T>
std::vector<double> numbers_of(const T& member) {
  if constexpr (std::is_same_v<T, std::vector<double>>) {
    return member;
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    return member ? std::vector{*member} : std::vector<double>{};
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return {};  // texts are settings
  } else {
    return {static_cast<double>(member)};
  }
}

template <class T>
void from_numbers(T& member, const std::vector<double>& numbers, const std::string& what) {
  if constexpr (std::is_same_v<T, std::vector<double>>) {
    member = numbers;
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    member = numbers.empty() ? std::nullopt : std::optional(numbers.front());
  } else if constexpr (!std::is_same_v<T, std::string_view>) {
    if (numbers.size() != 1) refuse(what + ": expected one number");
    member = static_cast<T>(numbers.front());
  }
}

/// A setting that a framework's constructor requires to be above (or below) 1.
struct Asserted {
  std::string_view policy, setting;
  bool above;
};
// Checks in GradScaler of PyTorch, DynamicGradScaler of Megatron-LM and ColossalAI, AmpScaler of
// Paddle; Info::source names the files.
constexpr Asserted kAsserted[] = {
    {"torch", "growth_factor", true},      {"torch", "backoff_factor", false},
    {"megatron", "growth_factor", true},   {"megatron", "backoff_factor", false},
    {"colossalai", "growth_factor", true}, {"colossalai", "backoff_factor", false},
    {"paddle", "incr_ratio", true},        {"paddle", "decr_ratio", false},
};

/// Throws std::invalid_argument for settings that the framework itself rejects.
void refuse_as_framework(const Policy& policy) {
  const std::string_view name = info_of(policy).name;
  const std::string what = "policy " + std::string(name) + ": ";
  for (const Asserted& one : kAsserted) {
    const double value = one.policy == name ? number_of(policy, one.setting).value_or(1) : 1;
    if (one.policy != name || (one.above ? value > 1 : value < 1)) continue;
    refuse(what + std::string(one.setting) + ": found " + text_of(Value(value)) + ", expected " +
           (one.above ? "above" : "below") + " 1: the framework asserts it");
  }
  if (name == "megatron" && *number_of(policy, "min_scale") > *number_of(policy, "initial_scale")) {
    refuse(what + "min_scale is above initial_scale: the framework asserts that it is not");
  }
  if (name == "mindspore" && *number_of(policy, "init_loss_scale") < 1) {
    refuse(what + "init_loss_scale: found " +
           text_of(Value(*number_of(policy, "init_loss_scale"))) +
           ", expected 1 or above: the framework raises a ValueError");
  }
}

}  // namespace

Policy make(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(','));
  const std::vector<Policy> known = all();
  std::vector<std::string_view> names;
  for (const Policy& policy : known) {
    names.push_back(info_of(policy).name);
    if (names.back() != name) continue;
    Policy made = policy;
    if (text.size() > name.size()) set_all(made, text.substr(name.size() + 1));
    refuse_as_framework(made);
    start(made);
    return made;
  }
  refuse("policy " + quoted(name) + " is unknown; use one of " + list(names));
}

std::vector<std::pair<std::string_view, Value>> settings_of(const Policy& policy) {
  std::vector<std::pair<std::string_view, Value>> all;
  Policy copy = policy;
  for (const Member& member : settings_in(copy)) {
    all.emplace_back(member.name,
                     std::visit([](const auto* value) { return value_of(*value); }, member.value));
  }
  return all;
}

std::string text_of(const Policy& policy) {
  std::string text(info_of(policy).name);
  for (const auto& [name, value] : settings_of(policy)) {
    text += "," + std::string(name) + "=" + text_of(value);
  }
  return text;
}

std::string short_text_of(const Policy& policy) {
  const auto defaults = settings_of(make(info_of(policy).name));
  std::string text(info_of(policy).name);
  const auto settings = settings_of(policy);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const auto& [name, value] = settings[i];
    if (value != defaults[i].second) text += "," + std::string(name) + "=" + text_of(value);
  }
  // In some policies, giving one setting changes the defaults of others.
  const std::string whole = text_of(policy);
  return text_of(make(text)) == whole ? text : whole;
}

std::optional<double> number_of(const Policy& policy, std::string_view setting) {
  for (const auto& [name, value] : settings_of(policy)) {
    if (name != setting) continue;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* count = std::get_if<std::int64_t>(&value)) return static_cast<double>(*count);
  }
  return std::nullopt;
}

std::map<std::string, std::vector<double>> state_of(const Policy& policy) {
  std::map<std::string, std::vector<double>> all;
  Policy copy = policy;
  for (const Member& member : state_in(copy)) {
    all[std::string(member.name)] =
        std::visit([](const auto* value) { return numbers_of(*value); }, member.value);
  }
  return all;
}

void restore(Policy& policy, const std::map<std::string, std::vector<double>>& state) {
  for (const Member& member : state_in(policy)) {
    const std::string what =
        "policy " + std::string(info_of(policy).name) + ": state " + std::string(member.name);
    const auto found = state.find(std::string(member.name));
    if (found == state.end()) refuse(what + " is missing");
    std::visit([&](auto* value) { from_numbers(*value, found->second, what); }, member.value);
  }
}

}  // namespace halfscope::policy
