// SPDX-License-Identifier: Apache-2.0
// What a Tensor Core may do instead of what the model says: the first one is the model, and each
// of the others must be refuted somewhere.
#pragma once

#include <string>
#include <vector>

#include "halfscope/tensor_core/mma.hpp"
#include "tensor_core/golden.hpp"
#include "tensor_core/rules.hpp"

namespace probe {

struct Hypothesis {
  std::string name;
  Rule rule;
  /// Published models differ here, so one of these may be right in place of the first.
  bool open = false;
};

inline constexpr std::size_t kMostHypotheses = 32;  // one bit each in a word

namespace detail {

using halfscope::tensor_core::kNoFloor;
using halfscope::tensor_core::Unit;

struct Floor {
  const char* name;
  int value;
};

inline std::vector<Floor> floors_about(int value) {
  return {{"floor", value},
          {"floor one more", value + 1},
          {"floor one less", value - 1},
          {"no floor", kNoFloor}};
}

/// What published models disagree about, or binary16's products cannot show: a floor, the sign of
/// a sum that rounds to zero, and one more.
struct Disagreements {
  int Unit::*floor;
  bool Unit::*more;
  bool named;  ///< the value of `more` that has a name
  const char* name;
  bool open;
};
inline constexpr Disagreements kOfBinary16 = {&Unit::floor16, &Unit::normalises_c, true,
                                              ", subnormal C normalised", true};
inline constexpr Disagreements kOfBinary32 = {&Unit::floor32, &Unit::infinite32, false,
                                              ", never infinity", false};

/// Every combination of them, the model itself first.
inline void add_disagreements(std::vector<Hypothesis>& out, const Unit& model,
                              const Disagreements& of) {
  for (const bool other_zero : {false, true}) {
    for (const bool other : {false, true}) {
      for (const Floor& floor : floors_about(model.*of.floor)) {
        Unit unit = model;
        unit.*of.floor = floor.value;
        unit.negative_zero = model.negative_zero != other_zero;
        unit.*of.more = model.*of.more != other;
        out.push_back({std::string(floor.name) + (unit.negative_zero ? ", -0" : ", +0") +
                           (unit.*of.more == of.named ? of.name : ""),
                       {unit},
                       of.open});
      }
    }
  }
}

template <typename Change>
void add_changed(std::vector<Hypothesis>& out, const std::string& name, Change change) {
  Rule rule = out.front().rule;
  change(rule.unit);
  out.push_back({name, rule});
}

/// What is wrong whatever the operands are.
inline void add_wrong(std::vector<Hypothesis>& out) {
  using halfscope::Rounding;
  add_changed(out, "one bit less", [](Unit& u) { --u.fraction_bits; });
  add_changed(out, "one bit more", [](Unit& u) { ++u.fraction_bits; });
  add_changed(out, "two bits more", [](Unit& u) { u.fraction_bits += 2; });
  for (const int length : {4, 8, 16}) {
    add_changed(out, "steps of " + std::to_string(length), [=](Unit& u) { u.length = length; });
  }
  add_changed(out, "other rounding", [](Unit& u) {
    u.round16 = Rounding::toward_zero;
    u.round32 = Rounding::ties_to_even;
  });
  add_changed(out, "by way of binary32", [](Unit& u) { u.by_way_of_32 = true; });
  add_changed(out, "normalised products", [](Unit& u) { u.normalises_products = true; });
  add_changed(out, "zeros align", [](Unit& u) { u.zeros_align = true; });
}

inline void add_architectures(std::vector<Hypothesis>& out) {
  for (const auto& row : halfscope::tensor_core::kArchitectures) {
    if (row.name == "volta" || row.name == "ampere" || row.name == "hopper") {
      out.push_back({std::string(row.name), {row.unit}});
    }
  }
}

/// wgmma on FP8.
inline std::vector<Hypothesis> native_fp8() {
  using halfscope::tensor_core::kHopper, halfscope::tensor_core::kHopperFp8;
  std::vector<Hypothesis> out = {{"model", {kHopperFp8}}};
  add_wrong(out);
  add_changed(out, "-0", [](Unit& u) { u.negative_zero = true; });
  add_changed(out, "subnormal C normalised", [](Unit& u) { u.normalises_c = true; });
  for (const int bits : {0, 9, 11}) {
    add_changed(out, std::to_string(bits) + " zero bits", [=](Unit& u) { u.zero_bits32 = bits; });
  }
  out.push_back({"hopper's steps of binary16", {kHopper}});
  out.push_back({"by way of binary16, pairs", {kHopper, Fp8::pairs}});
  return out;
}

/// mma.sync on FP8: code of the compiler, by way of binary16.
inline std::vector<Hypothesis> converted_fp8() {
  using halfscope::tensor_core::kHopper, halfscope::tensor_core::kHopperFp8;
  std::vector<Hypothesis> out = {{"model", {kHopper, Fp8::pairs}},
                                 {"by way of binary16, halves", {kHopper, Fp8::halves}},
                                 {"by way of binary16, from C", {kHopper, Fp8::pairs_from_c}},
                                 {"native", {kHopperFp8}}};
  add_changed(out, "one bit less", [](Unit& u) { --u.fraction_bits; });
  add_changed(out, "one bit more", [](Unit& u) { ++u.fraction_bits; });
  add_changed(out, "steps of 8", [](Unit& u) { u.length = 8; });
  return out;
}

}  // namespace detail

/// Of instructions on binary16 and bfloat16. Some are the same for some instructions: a longer step
/// than an instruction has products, or what only one format of D can show.
inline std::vector<Hypothesis> hypotheses(const halfscope::tensor_core::Unit& model,
                                          Operands operands = Operands::binary16) {
  std::vector<Hypothesis> out;
  const bool wide = operands == Operands::bfloat16;
  detail::add_disagreements(out, model, wide ? detail::kOfBinary32 : detail::kOfBinary16);
  out.front().name = "model";
  detail::add_wrong(out);
  detail::add_architectures(out);
  return out;
}

inline std::vector<Hypothesis> hypotheses(const halfscope::tensor_core::Unit& model,
                                          const InstructionRow& instruction) {
  if (!instruction.is_fp8()) return hypotheses(model, instruction.operands);
  return instruction.is_wgmma() ? detail::native_fp8() : detail::converted_fp8();
}

}  // namespace probe
