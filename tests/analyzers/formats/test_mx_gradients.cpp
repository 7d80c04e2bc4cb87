// SPDX-License-Identifier: Apache-2.0
// Which element keeps more in MX blocks, over given noise ratios.
#include "analyzers/formats/eight_bits.hpp"

#include <limits>

#include "catch.hpp"

namespace halfscope::analyzers::formats::test_mx_gradients {
namespace {

using underflow::TensorFindings;

TensorFindings tensor(const std::string& name, log::Role role, double e4m3, double e5m2) {
  TensorFindings t;
  t.name = name;
  t.role = role;
  for (const auto& [recipe, db] :
       {std::pair{"mxfp8-e4m3-floor", e4m3}, {"mxfp8-e5m2-floor", e5m2}}) {
    underflow::RecipeFit fit;
    fit.recipe = block::find_recipe(recipe);
    fit.noise = underflow::NoiseRatio{db, db, db, true};
    t.whole.set().mx_fits.push_back(fit);
  }
  return t;
}

std::optional<MxGradients> found_in(std::vector<TensorFindings> tensors) {
  underflow::Analysis analysis;
  analysis.logs.emplace_back().tensors = std::move(tensors);
  return mx_gradients(analysis);
}

constexpr log::Role kArriving = log::Role::activation_grad;

TEST_CASE("MX gradients: medians, and who keeps more", "[table]") {
  const auto found = found_in({tensor("a", kArriving, 30, 25), tensor("b", kArriving, 31, 26),
                               tensor("c", kArriving, 20, 24), tensor("d", kArriving, 20, 21),
                               tensor("w", log::Role::weight_grad, 0, 50),
                               tensor("x", log::Role::activation, 0, 50)});
  REQUIRE(found);
  CHECK(found->tensors == 4);
  CHECK(found->e4m3_better == 2);
  CHECK(found->e5m2_better == 2);
  CHECK(found->e4m3_db == 25);
  CHECK(found->e5m2_db == 24.5);
  CHECK(found->most_for_e5m2 == "c");
  CHECK(found->gained_db == 4);
}

TEST_CASE("MX gradients: of weights where no others are there, and exact ones") {
  constexpr double kExact = std::numeric_limits<double>::infinity();
  const auto found = found_in({tensor("w", log::Role::weight_grad, kExact, kExact),
                               tensor("v", log::Role::weight_grad, kExact, kExact)});
  REQUIRE(found);
  CHECK(found->tensors == 2);
  CHECK(found->e4m3_better == 0);
  CHECK(found->e5m2_better == 0);
  CHECK(found->e4m3_db == kExact);
  CHECK(found->most_for_e5m2.empty());
  CHECK_FALSE(found_in({TensorFindings()}));
}

}  // namespace
}  // namespace halfscope::analyzers::formats::test_mx_gradients
