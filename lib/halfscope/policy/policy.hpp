// SPDX-License-Identifier: Apache-2.0
// Every loss-scaling policy under one type: the list of policies, their settings, their steps.
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

struct Variant;  // defined in variant.hpp: the policies themselves

/// A policy with its settings and state. A step, live or replayed: compute the gradients at
/// scale_of(), then call advance() with them; repeat both while it returns retry. The next step
/// uses the new scale_of(). A moved-from object may only be assigned to or destroyed.
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

/// Returns every policy with its framework's defaults, in the order of the variant.
std::vector<Policy> all();

/// Creates a policy from its name and settings: "torch,init_scale=65536,growth_interval=4". Numbers
/// may be written 2^K. Throws std::invalid_argument; for an unknown name or key it lists the known
/// ones.
Policy make(std::string_view text);

const Info& info_of(const Policy& policy);

/// Returns the settings by the framework's names, in its order.
std::vector<std::pair<std::string_view, Value>> settings_of(const Policy& policy);
/// Returns the policy as text for make(): "torch,init_scale=65536,...".
std::string text_of(const Policy& policy);
/// Returns text for make() with only the settings that differ from the defaults:
/// "torch,growth_interval=4"; with all settings if the short text would create a different policy.
std::string short_text_of(const Policy& policy);
/// Returns a setting as a number; empty if it is None or not a number.
std::optional<double> number_of(const Policy& policy, std::string_view setting);

/// The range in which the framework keeps the scale, at the policy's settings.
struct Limits {
  double floor = 0, ceiling = std::numeric_limits<double>::infinity();
  bool floor_is_fixed = false;  ///< no setting lowers the floor
  bool whole_numbers = false;   ///< the initial scale and the floor are integers
};
Limits limits_of(const Policy& policy);

/// Returns the facts about the gradients that the policy needs, at its settings.
Needs needs_of(const Policy& policy);

/// Resets the state to that before the first step.
void start(Policy& policy);
/// Returns the loss scale of the next attempt; it can be 0 or infinity.
double scale_of(const Policy& policy);
/// Updates the state after an attempt. Must not be called again after a Decision with an error.
Decision advance(Policy& policy, const Attempt& attempt);

/// State for a checkpoint, besides the settings. After restore() the policy continues with the same
/// bits. Throws std::invalid_argument if a name is missing.
std::map<std::string, std::vector<double>> state_of(const Policy& policy);
void restore(Policy& policy, const std::map<std::string, std::vector<double>>& state);

}  // namespace halfscope::policy
