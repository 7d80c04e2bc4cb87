// SPDX-License-Identifier: Apache-2.0
// What a Tensor Core may do instead of what the model says: the first one is the model, and each
// of the others must be refuted somewhere.
#pragma once

#include <string>
#include <vector>

#include "halfscope/tensor_core/mma.hpp"

namespace probe {

struct Hypothesis {
  std::string name;
  halfscope::tensor_core::Unit unit;
  /// Published models differ here, so one of these may be right in place of the first.
  bool open;
};

inline constexpr std::size_t kMostHypotheses = 32;  // one bit each in a word

namespace detail {

using halfscope::tensor_core::Unit;

/// Every combination of the disagreements, the model itself first.
inline void add_disagreements(std::vector<Hypothesis>& out, const Unit& model) {
  struct Floor {
    const char* name;
    int value;
  };
  const Floor floors[] = {{"floor", model.floor16},
                          {"floor one more", model.floor16 + 1},
                          {"floor one less", model.floor16 - 1},
                          {"no floor", halfscope::tensor_core::kNoFloor}};
  for (const bool other_zero : {false, true}) {
    for (const bool other_c : {false, true}) {
      for (const Floor& floor : floors) {
        Unit unit = model;
        unit.floor16 = floor.value;
        unit.negative_zero = model.negative_zero != other_zero;
        unit.normalises_c = model.normalises_c != other_c;
        out.push_back({std::string(floor.name) + (unit.negative_zero ? ", -0" : ", +0") +
                           (unit.normalises_c ? ", subnormal C normalised" : ""),
                       unit, true});
      }
    }
  }
}

inline void add_wrong(std::vector<Hypothesis>& out, const std::string& name, Unit unit) {
  out.push_back({name, unit, false});
}

}  // namespace detail

/// Some are the same for some instructions: a longer step than an instruction has products, or what
/// only one format of D can show.
inline std::vector<Hypothesis> hypotheses(const halfscope::tensor_core::Unit& model) {
  using halfscope::Rounding;
  std::vector<Hypothesis> out;
  detail::add_disagreements(out, model);
  out.front().name = "model";
  auto changed = [&](const std::string& name, auto change) {
    halfscope::tensor_core::Unit unit = model;
    change(unit);
    detail::add_wrong(out, name, unit);
  };
  changed("one bit less", [](auto& u) { --u.fraction_bits; });
  changed("one bit more", [](auto& u) { ++u.fraction_bits; });
  changed("two bits more", [](auto& u) { u.fraction_bits += 2; });
  changed("steps of 4", [](auto& u) { u.length = 4; });
  changed("steps of 8", [](auto& u) { u.length = 8; });
  changed("steps of 16", [](auto& u) { u.length = 16; });
  changed("other rounding", [](auto& u) {
    u.round16 = Rounding::toward_zero;
    u.round32 = Rounding::ties_to_even;
  });
  changed("by way of binary32", [](auto& u) { u.by_way_of_32 = true; });
  changed("normalised products", [](auto& u) { u.normalises_products = true; });
  changed("zeros align", [](auto& u) { u.zeros_align = true; });
  for (const auto& row : halfscope::tensor_core::kArchitectures) {
    if (row.name == "volta" || row.name == "ampere" || row.name == "hopper") {
      detail::add_wrong(out, std::string(row.name), row.unit);
    }
  }
  return out;
}

}  // namespace probe
