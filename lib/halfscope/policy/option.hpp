// SPDX-License-Identifier: Apache-2.0
// How a policy tells its settings and its state by name: one row a member.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace halfscope::policy {

/// What the value of a setting may be.
enum class Range : std::uint8_t {
  any,           ///< finite
  positive,      ///< finite, above 0
  non_negative,  ///< finite, 0 or above
  count          ///< an integer, 1 or above
};

/// A member of policy P under the framework's name. Optional numbers may be "None".
template <class P>
struct Option {
  std::string_view name;
  std::variant<double P::*, float P::*, std::int64_t P::*, bool P::*, std::optional<double> P::*,
               std::string_view P::*, std::vector<double> P::*>
      member;
  Range range = Range::any;
  std::span<const std::string_view> choices = {};  ///< of a text: what it may be
};

/// The value of a setting, for people and JSON; monostate is None.
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string_view>;

enum class Arithmetic : std::uint8_t { binary32, binary64 };

/// What a policy must see of the gradients.
enum class Needs : std::uint8_t {
  nothing,    ///< a static scale, never checked
  nonfinite,  ///< whether one is infinite or NaN
  magnitude,  ///< the largest magnitude
  tensors,    ///< the largest magnitude of one tensor: one policy object a tensor
  layers      ///< LayerFacts: one policy object a layer
};

/// What is known of a policy without running it.
struct Info {
  std::string_view name;       ///< on the command line
  std::string_view framework;  ///< "PyTorch, torch.amp.GradScaler"
  std::string_view source;     ///< file and commit
  std::string_view quirk;      ///< what surprises; one sentence, may be empty
  Arithmetic arithmetic = Arithmetic::binary64;
  Needs needs = Needs::nonfinite;
  /// Names of the settings that every growing policy has in some form; empty where it has none.
  /// "initial_scale" and "growth_interval" are taken as other names of the first two.
  std::string_view initial = {}, interval = {}, floor = {};
  std::string_view ceiling = {};  ///< the setting that the scale never grows beyond
};

}  // namespace halfscope::policy
