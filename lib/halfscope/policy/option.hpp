// SPDX-License-Identifier: Apache-2.0
// Descriptions of a policy's settings and state by name, one row per member.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace halfscope::policy {

/// Permitted values of a setting.
enum class Range : std::uint8_t {
  any,           ///< finite
  positive,      ///< finite, above 0
  non_negative,  ///< finite, 0 or above
  count          ///< an integer, 1 or above
};

/// A member of policy P, with the framework's name for it. Optional numbers may be set to "None".
template <class P>
struct Option {
  std::string_view name;
  std::variant<double P::*, float P::*, std::int64_t P::*, bool P::*, std::optional<double> P::*,
               std::string_view P::*, std::vector<double> P::*>
      member;
  Range range = Range::any;
  std::span<const std::string_view> choices = {};  ///< permitted values of a text
};

/// The value of a setting, for messages and JSON; monostate is None.
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string_view>;

enum class Arithmetic : std::uint8_t { binary32, binary64 };

/// Facts about the gradients that a policy needs.
enum class Needs : std::uint8_t {
  nothing,    ///< a static scale, never checked
  nonfinite,  ///< true if any gradient is infinite or NaN
  magnitude,  ///< the largest magnitude
  tensors,    ///< the largest magnitude of a tensor: one policy object per tensor
  layers      ///< LayerFacts: one policy object per layer
};

/// Static description of a policy.
struct Info {
  std::string_view name;       ///< on the command line
  std::string_view framework;  ///< "PyTorch, torch.amp.GradScaler"
  std::string_view source;     ///< file and commit
  std::string_view quirk;      ///< surprising behaviour, in one sentence; empty: none
  Arithmetic arithmetic = Arithmetic::binary64;
  Needs needs = Needs::nonfinite;
  /// Names of the settings for the first scale, the growth interval and the floor; empty if the
  /// policy has none. "initial_scale" and "growth_interval" are aliases of the first two.
  std::string_view initial = {}, interval = {}, floor = {};
  std::string_view ceiling = {};  ///< name of the setting that limits growth; empty: none
};

}  // namespace halfscope::policy
