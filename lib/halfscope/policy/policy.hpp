// SPDX-License-Identifier: Apache-2.0
// Every loss-scaling policy under one type: which there are, their settings by name, their steps.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

struct Variant;  // variant.hpp: the policies themselves

/// A policy with its settings and state. How a step goes, online or replayed: pass at scale_of(),
/// then advance() with what the gradients were, again while it says retry; the next step uses the
/// scale it leaves. What was moved from may only be assigned to or destroyed.
class Policy {
 public:
  Policy();  ///< a static scale
  explicit Policy(Variant&& variant);
  Policy(const Policy& other);
  Policy(Policy&& other) noexcept;
  Policy& operator=(const Policy& other);
  Policy& operator=(Policy&& other) noexcept;
  ~Policy();

  Variant& variant() { return *variant_; }
  const Variant& variant() const { return *variant_; }

 private:
  std::unique_ptr<Variant> variant_;
};

/// Of every policy, at its framework's defaults, in the order of the variant.
std::vector<Policy> all();

/// A policy from its name and settings: "torch,init_scale=65536,growth_interval=4". Numbers may be
/// written 2^K. Throws std::invalid_argument: an unknown name or key lists the known ones.
Policy make(std::string_view text);

const Info& info_of(const Policy& policy);

/// Settings by the framework's names, in its order.
std::vector<std::pair<std::string_view, Value>> settings_of(const Policy& policy);
/// The same as make() takes it: "torch,init_scale=65536,...".
std::string text_of(const Policy& policy);
/// With those settings alone that differ from the defaults, "torch,growth_interval=4"; with all
/// where these do not make the same policy.
std::string short_text_of(const Policy& policy);
/// A setting as a number; empty where it is none, or None.
std::optional<double> number_of(const Policy& policy, std::string_view setting);

/// What the framework keeps the scale between, at the policy's settings.
struct Limits {
  double floor = 0, ceiling = std::numeric_limits<double>::infinity();
  bool floor_is_fixed = false;  ///< no setting lowers it
  bool whole_numbers = false;   ///< it starts at an integer, and the floor is set to one
};
Limits limits_of(const Policy& policy);

/// What it must see of the gradients, at its settings.
Needs needs_of(const Policy& policy);

/// Sets its state to what it is before the first step.
void start(Policy& policy);
/// The loss scale of the next attempt; may be 0 or infinity.
double scale_of(const Policy& policy);
/// Must not be called again after an error.
Decision advance(Policy& policy, const Attempt& attempt);

/// What a checkpoint has to keep, besides the settings; restore() makes the policy go on with the
/// same bits. Throws std::invalid_argument where a name is missing.
std::map<std::string, std::vector<double>> state_of(const Policy& policy);
void restore(Policy& policy, const std::map<std::string, std::vector<double>>& state);

}  // namespace halfscope::policy
