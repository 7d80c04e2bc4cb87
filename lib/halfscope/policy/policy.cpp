// SPDX-License-Identifier: Apache-2.0
#include "halfscope/policy/policy.hpp"

#include <utility>

#include "halfscope/policy/variant.hpp"

namespace halfscope::policy {
namespace {

template <std::size_t... I>
std::vector<Policy> each_alternative(std::index_sequence<I...>) {
  std::vector<Policy> policies;
  (policies.emplace_back(Variant(std::in_place_index<I>)), ...);
  for (Policy& policy : policies) start(policy);
  return policies;
}

}  // namespace

Policy::Policy() : Policy(Variant()) {}
Policy::Policy(Variant&& variant) : variant_(std::make_unique<Variant>(std::move(variant))) {}
Policy::Policy(const Policy& other) : variant_(std::make_unique<Variant>(other.variant())) {}
Policy::Policy(Policy&& other) noexcept = default;
Policy& Policy::operator=(const Policy& other) { return *this = Policy(other); }
Policy& Policy::operator=(Policy&& other) noexcept = default;
Policy::~Policy() = default;

std::vector<Policy> all() {
  return each_alternative(std::make_index_sequence<std::variant_size_v<Variant::variant>>());
}

const Info& info_of(const Policy& policy) {
  return std::visit([](const auto& p) -> const Info& { return p.info; }, policy.variant());
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
      policy.variant());
  return limits;
}

Needs needs_of(const Policy& policy) {
  return std::visit(
      [](const auto& p) {
        if constexpr (requires { p.needs(); }) {
          return p.needs();
        } else {
          return p.info.needs;
        }
      },
      policy.variant());
}

void start(Policy& policy) {
  std::visit([](auto& p) { p.start(); }, policy.variant());
}

double scale_of(const Policy& policy) {
  return std::visit([](const auto& p) -> double { return p.scale(); }, policy.variant());
}

Decision advance(Policy& policy, const Attempt& attempt) {
  return std::visit([&](auto& p) { return p.advance(attempt); }, policy.variant());
}

}  // namespace halfscope::policy
