// SPDX-License-Identifier: Apache-2.0
// Scalars that many tools write, by the tags they give them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace halfscope::analyzers::readers::tensorboard {

struct KnownScalar {
  enum class What : std::uint8_t { loss, learning_rate, loss_scale, found_inf };
  What what;
  unsigned rank;  ///< of several tags for one thing, the one of the lowest rank is taken

  friend auto operator<=>(const KnownScalar&, const KnownScalar&) = default;
};
std::string_view name_of(KnownScalar::What what);

/// Letters' case, and whether words are joined by '_', '-' or a space, make no difference.
std::optional<KnownScalar> known_scalar(std::string_view tag);

}  // namespace halfscope::analyzers::readers::tensorboard
