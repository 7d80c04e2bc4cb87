// SPDX-License-Identifier: Apache-2.0
#include "halfscope/policy/policy.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <type_traits>

namespace halfscope::policy {
namespace {

/// The type of the member that an alternative of Option::member points to.
template <class M>
struct Pointed;
template <class T, class P>
struct Pointed<T P::*> {
  using type = T;
};
template <class M>
using PointedType = typename Pointed<std::remove_cvref_t<M>>::type;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

template <class Names>
std::string list(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// The whole text as a number, also "2^K"; empty where it is none.
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

/// Whether a setting is still in range where the framework holds it in binary32: above the largest
/// such number it would be infinite, and a positive one may round to 0.
bool in_binary32_range(double value, Range range) {
  constexpr double kInfinite = 0x1.ffffffp127;  // rounds to infinity, and all above
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

/// What the value of a setting must be.
struct Wanted {
  Range range = Range::any;
  std::span<const std::string_view> choices = {};
  Arithmetic arithmetic = Arithmetic::binary64;
};

/// What a setting that is given as text becomes. Throws naming `what`.
template <class T>
T parse(std::string_view text, const Wanted& want, const std::string& what) {
  const auto found = what + ": found " + quoted(text) + ", want ";
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

template <class P>
std::vector<std::string_view> keys() {
  std::vector<std::string_view> names;
  for (const Option<P>& option : P::settings()) names.push_back(option.name);
  return names;
}

/// Names that mean the same for every policy.
template <class P>
std::string_view own_name(std::string_view key) {
  if (key == "initial_scale" && !P::info.initial.empty()) return P::info.initial;
  if (key == "growth_interval" && !P::info.interval.empty()) return P::info.interval;
  return key;
}

/// Sets one setting. A policy with given() is told of it first: what is given may change others'
/// defaults.
template <class P>
void set(P& policy, std::string_view key, std::string_view text) {
  if constexpr (requires { policy.given(key); }) policy.given(key);
  for (const Option<P>& option : P::settings()) {
    if (option.name != key) continue;
    std::visit(
        [&](auto member) {
          using T = PointedType<decltype(member)>;
          if constexpr (!std::is_same_v<T, std::vector<double>>) {
            policy.*member =
                parse<T>(text, {option.range, option.choices, P::info.arithmetic},
                         "policy " + std::string(P::info.name) + ": " + std::string(key));
          }
        },
        option.member);
    return;
  }
  refuse("policy " + std::string(P::info.name) + " has no setting " + quoted(key) + "; it has " +
         list(keys<P>()));
}

/// "key=value,key=value" into a policy.
template <class P>
void set_all(P& policy, std::string_view text) {
  std::vector<std::string_view> seen;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      refuse("policy " + std::string(P::info.name) + ": found " + quoted(item) +
             ", want key=value; its keys are " + list(keys<P>()));
    }
    const std::string_view key = own_name<P>(item.substr(0, equals));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      refuse("policy " + std::string(P::info.name) + ": " + std::string(key) + " is given twice");
    }
    seen.push_back(key);
    set(policy, key, item.substr(equals + 1));
  }
}

template <std::size_t... I>
std::vector<Policy> each_alternative(std::index_sequence<I...>) {
  std::vector<Policy> policies;
  (policies.emplace_back(std::in_place_index<I>), ...);
  for (Policy& policy : policies) std::visit([](auto& p) { p.start(); }, policy);
  return policies;
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

/// A state member as numbers, and back.
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
    if (numbers.size() != 1) refuse(what + ": want one number");
    member = static_cast<T>(numbers.front());
  }
}

/// A setting that a framework's constructor asserts to be above or below 1.
struct Asserted {
  std::string_view policy, setting;
  bool above;
};
// GradScaler of PyTorch; DynamicGradScaler of Megatron-LM and ColossalAI; AmpScaler of Paddle: the
// files that Info::source names.
constexpr Asserted kAsserted[] = {
    {"torch", "growth_factor", true},      {"torch", "backoff_factor", false},
    {"megatron", "growth_factor", true},   {"megatron", "backoff_factor", false},
    {"colossalai", "growth_factor", true}, {"colossalai", "backoff_factor", false},
    {"paddle", "incr_ratio", true},        {"paddle", "decr_ratio", false},
};

/// Throws where the framework itself takes no such settings.
void refuse_as_framework(const Policy& policy) {
  const std::string_view name = info_of(policy).name;
  const std::string what = "policy " + std::string(name) + ": ";
  for (const Asserted& one : kAsserted) {
    const double value = one.policy == name ? number_of(policy, one.setting).value_or(1) : 1;
    if (one.policy != name || (one.above ? value > 1 : value < 1)) continue;
    refuse(what + std::string(one.setting) + ": found " + text_of(Value(value)) + ", want " +
           (one.above ? "above" : "below") + " 1: the framework asserts it");
  }
  if (name == "megatron" && *number_of(policy, "min_scale") > *number_of(policy, "initial_scale")) {
    refuse(what + "min_scale is above initial_scale: the framework asserts that it is not");
  }
  if (name == "mindspore" && *number_of(policy, "init_loss_scale") < 1) {
    refuse(what + "init_loss_scale: found " +
           text_of(Value(*number_of(policy, "init_loss_scale"))) +
           ", want 1 or above: the framework raises a ValueError");
  }
}

}  // namespace

std::vector<Policy> all() {
  return each_alternative(std::make_index_sequence<std::variant_size_v<Policy>>());
}

Policy make(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(','));
  const std::vector<Policy> known = all();
  std::vector<std::string_view> names;
  for (const Policy& policy : known) {
    names.push_back(info_of(policy).name);
    if (names.back() != name) continue;
    Policy made = policy;
    std::visit(
        [&](auto& p) {
          if (text.size() > name.size()) set_all(p, text.substr(name.size() + 1));
        },
        made);
    refuse_as_framework(made);
    std::visit([](auto& p) { p.start(); }, made);
    return made;
  }
  refuse("policy " + quoted(name) + " is not known; want one of " + list(names));
}

const Info& info_of(const Policy& policy) {
  return std::visit([](const auto& p) -> const Info& { return p.info; }, policy);
}

std::vector<std::pair<std::string_view, Value>> settings_of(const Policy& policy) {
  std::vector<std::pair<std::string_view, Value>> all;
  std::visit(
      [&](const auto& p) {
        for (const auto& option : p.settings()) {
          all.emplace_back(option.name,
                           std::visit([&](auto m) { return value_of(p.*m); }, option.member));
        }
      },
      policy);
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
  // Of some policies one setting that is given changes the defaults of others.
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

Limits limits_of(const Policy& policy) {
  const Info& info = info_of(policy);
  Limits limits;
  limits.floor = number_of(policy, info.floor).value_or(0);
  limits.ceiling = number_of(policy, info.ceiling).value_or(limits.ceiling);
  std::visit(
      [&]<class P>(const P& p) {
        if constexpr (requires { p.fixed_floor(); }) {
          limits.floor = p.fixed_floor();
          limits.floor_is_fixed = true;
        }
        if constexpr (requires { P::whole_numbers; }) limits.whole_numbers = P::whole_numbers;
      },
      policy);
  return limits;
}

double scale_of(const Policy& policy) {
  return std::visit([](const auto& p) -> double { return p.scale(); }, policy);
}

Decision advance(Policy& policy, const Attempt& attempt) {
  return std::visit([&](auto& p) { return p.advance(attempt); }, policy);
}

std::map<std::string, std::vector<double>> state_of(const Policy& policy) {
  std::map<std::string, std::vector<double>> all;
  std::visit(
      [&](const auto& p) {
        for (const auto& option : p.state()) {
          all[std::string(option.name)] =
              std::visit([&](auto m) { return numbers_of(p.*m); }, option.member);
        }
      },
      policy);
  return all;
}

void restore(Policy& policy, const std::map<std::string, std::vector<double>>& state) {
  std::visit(
      [&](auto& p) {
        for (const auto& option : p.state()) {
          const std::string what =
              "policy " + std::string(p.info.name) + ": state " + std::string(option.name);
          const auto found = state.find(std::string(option.name));
          if (found == state.end()) refuse(what + " is missing");
          std::visit([&](auto m) { from_numbers(p.*m, found->second, what); }, option.member);
        }
      },
      policy);
}

}  // namespace halfscope::policy
