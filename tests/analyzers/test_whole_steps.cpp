// SPDX-License-Identifier: Apache-2.0
#include "analyzers/whole_steps.hpp"

#include "analyzers/fits.hpp"
#include "catch.hpp"

namespace test_whole_steps {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

/// Two steps of two weights; what else there is has no partner.
void write_steps(const TempFolder& folder) {
  for (const unsigned step : {1u, 2u}) {
    const Values a = gradients(700, step, -3), b = gradients(900, step + 2, -3);
    const Values a_after = gradients(700, step + 4, -3), lone = gradients(300, step + 6);
    log::write_safetensors(folder / ("step_" + std::to_string(step) + ".safetensors"),
                           {{"weight/a", {700}, test::view_of(a)},
                            {"weight_after/a", {700}, test::view_of(a_after)},
                            {"weight/b", {900}, test::view_of(b)},
                            {"weight_grad/b", {300}, test::view_of(lone)},
                            {"activation/x", {300}, test::view_of(lone)}});
  }
}

underflow::Analysis with(const TempFolder& folder, const std::vector<Passes>& asked,
                         const underflow::Target& target = {}) {
  underflow::Analysis analysis = underflow::analyze({folder / "."}, target, {});
  for (const Passes& passes : asked) add_whole_steps(analysis, {}, passes);
  return analysis;
}

TEST_CASE("whole steps that are read once tell what they tell one question at a time", "[table]") {
  const TempFolder folder;
  write_steps(folder);
  const Passes updates = {.updates = true, .what_if = true};
  const Passes formats = {.formats = true};
  const underflow::Analysis once =
      with(folder, {{.updates = true, .what_if = true, .formats = true}});
  const underflow::Analysis twice = with(folder, {updates, formats});
  CHECK(once.notes == twice.notes);
  REQUIRE(once.tensors().size() == 5);
  for (std::size_t i = 0; i < once.tensors().size(); ++i) {
    const underflow::TensorFindings &a = once.tensors()[i], &b = twice.tensors()[i];
    CHECK(a.whole->whole_steps == std::vector<std::int64_t>{1, 2});
    CHECK(a.sums->has_value());
    CHECK(*a.sums == *b.sums);
    REQUIRE(a.whole->fits.size() == b.whole->fits.size());
    CHECK(a.whole->fits[0].noise_at_best->db == b.whole->fits[0].noise_at_best->db);
    CHECK(a.whole->mx_fits.size() == b.whole->mx_fits.size());
    CHECK((a.updates != nullptr) == (a.name == "weight/a"));
    CHECK((b.updates == nullptr) == (a.updates == nullptr));
    if (!a.updates) continue;
    CHECK(a.updates->table == b.updates->table);
    CHECK(a.updates->what_if->kahan.steps == b.updates->what_if->kahan.steps);
  }
}

TEST_CASE("formats of another width than 16 have sums, and no updates", "[table]") {
  const TempFolder folder;
  write_steps(folder);
  const underflow::Analysis found =
      with(folder, {{.updates = true, .sums = true}}, {"e4m3", find_format("e4m3")->format});
  for (const underflow::TensorFindings& t : found.tensors()) {
    CHECK(t.sums->has_value());
    CHECK_FALSE(t.updates);
  }
}

TEST_CASE("how far whole steps are never goes back, and ends at the end", "[table]") {
  const TempFolder folder;
  write_steps(folder);
  underflow::Analysis analysis = underflow::analyze({folder / "."}, {}, {});
  std::uint64_t last = 0, all = 0;
  bool back = false;
  const auto progress = [&](std::uint64_t done, std::uint64_t of) {
    back = back || done < last;
    last = done;
    all = of;
  };
  add_whole_steps(analysis, {}, {.updates = true, .what_if = true, .formats = true}, {}, progress);
  CHECK_FALSE(back);
  CHECK(last == all);
  CHECK(all > 0);
}

}  // namespace test_whole_steps
