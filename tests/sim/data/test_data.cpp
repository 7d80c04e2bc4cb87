// SPDX-License-Identifier: Apache-2.0
#include "sim/data/data.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/backend/random.hpp"
#include "sim/data_files.hpp"

namespace test_data {

using namespace data_test;

TEST_CASE("FNV-1a and Philox have their published values", "[sim][data]") {
  CHECK(backend::hash_of("") == 0xcbf29ce484222325);
  CHECK(backend::hash_of("a") == 0xaf63dc4c8601ec8c);
  CHECK(backend::hash_of("foobar") == 0x85944171f73967e8);
  // A sequence whose name has hash h begins with the block of counter (0, 0, h low, h high).
  backend::Random random(0x0123456789abcdef, "a");
  const PhiloxBlock block = philox4x32({{0, 0, 0x8601ec8c, 0xaf63dc4c}}, 0x89abcdef, 0x01234567);
  for (const std::uint32_t word : block.words) CHECK(random.word() == word);
  CHECK(random.word() ==
        philox4x32({{1, 0, 0x8601ec8c, 0xaf63dc4c}}, 0x89abcdef, 0x01234567).words[0]);
}

TEST_CASE("a permutation has every number once and favours no place", "[sim][data]") {
  std::vector<int> first(5);
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    auto order = backend::permutation(5, backend::Random(seed, "order"));
    ++first[order[0]];
    std::ranges::sort(order);
    REQUIRE(order == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
  }
  for (const int count : first) CHECK(std::abs(count - 1000) < 150);  // 5 deviations of 28
}

TEST_CASE("batches depend on the seed and their number alone", "[sim][data]") {
  const TempFolder folder;
  folder.write("digits.csv", digits());
  for (const std::string& name : {std::string("blobs"), std::string("images"), std::string("boxes"),
                                  std::string("text"), (folder / "digits.csv").string()}) {
    INFO(name);
    const auto a = data::open_data(name, 11), b = data::open_data(name, 11),
               c = data::open_data(name, 12);
    const data::Batch third = a->batch(3, 8);
    a->batch(200, 8);
    CHECK(same(a->batch(3, 8), third));
    CHECK(same(b->batch(3, 8), third));
    CHECK_FALSE(same(a->batch(4, 8), third));
    CHECK_FALSE(same(c->batch(3, 8), third));
    const auto held = a->held_out(64);
    REQUIRE_FALSE(held.empty());
    CHECK(same(b->held_out(64)[0], held[0]));
    CHECK_FALSE(same(held[0], a->batch(0, 64)));
  }
}

TEST_CASE("an epoch has every training image once, and none that is held out", "[sim][data]") {
  const TempFolder folder;
  folder.write("digits.csv", digits());
  const auto data = data::open_data((folder / "digits.csv").string(), 4);
  CHECK(data->describe() == "scikit-learn digits, 1437 of 1797 images");
  CHECK(data->classes() == 10);
  CHECK(data->example() == backend::Shape{8, 8, 1});
  // Image i has pixel 0 = i % 17 and label i % 10: 170 kinds.
  const auto count = [](const data::Batch& batch, std::map<std::pair<int, int>, int>& kinds) {
    for (std::size_t i = 0; i < batch.labels.size(); ++i) {
      ++kinds[{static_cast<int>(batch.inputs[64 * i] * 16), batch.labels[i]}];
    }
  };
  std::map<std::pair<int, int>, int> all, first, second, held;
  for (int i = 0; i < 1797; ++i) ++all[{i % 17, i % 10}];
  for (const data::Batch& batch : data->held_out(100)) count(batch, held);
  for (std::int64_t i = 0; i < 479; ++i) count(data->batch(i, 3), first);
  for (std::int64_t i = 479; i < 958; ++i) count(data->batch(i, 3), second);
  CHECK(first == second);
  for (const auto& [kind, number] : held) first[kind] += number;
  CHECK(first == all);
  CHECK_FALSE(same(data->batch(0, 3), data->batch(479, 3)));  // in another order
}

TEST_CASE("generated boxes lie within the image and do not touch", "[sim][data]") {
  const auto data = data::open_data("boxes", 2);
  const data::Batch batch = data->batch(0, 200);
  CHECK(batch.shape == backend::Shape{200, 48, 48, 3});
  REQUIRE(batch.boxes.size() == 200);
  std::set<std::size_t> counts;
  std::set<std::int32_t> labels;
  for (std::size_t image = 0; image < 200; ++image) {
    const auto& boxes = batch.boxes[image];
    counts.insert(boxes.size());
    for (const data::Box& box : boxes) {
      labels.insert(box.label);
      CHECK((box.left >= 0 && box.top >= 0 && box.right <= 1 && box.bottom <= 1));
      CHECK((box.right - box.left > 8.9F / 48 && box.bottom - box.top > 8.9F / 48));
      // Its first pixel is bright, whatever its class; the one to the left is ground.
      const auto pixel = [&](int x, int y) {
        return batch.inputs[((image * 48 + static_cast<std::size_t>(y)) * 48 +
                             static_cast<std::size_t>(x)) *
                            3];
      };
      const int x = static_cast<int>(std::lround(box.left * 48));
      const int y = static_cast<int>(std::lround(box.top * 48));
      CHECK(pixel(x, y) > 0.19F);
      if (x > 0) CHECK(pixel(x - 1, y) < 0.21F);
    }
    for (std::size_t i = 1; i < boxes.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        CHECK((boxes[i].left >= boxes[j].right || boxes[j].left >= boxes[i].right ||
               boxes[i].top >= boxes[j].bottom || boxes[j].top >= boxes[i].bottom));
      }
    }
  }
  CHECK(counts == std::set<std::size_t>{1, 2, 3, 4});
  CHECK(labels == std::set<std::int32_t>{0, 1, 2});
}

TEST_CASE("generated sets have all their classes", "[sim][data]") {
  for (const char* name : {"blobs", "images"}) {
    const data::Batch batch = data::open_data(name, 1)->batch(0, 300);
    CHECK(std::set<std::int32_t>(batch.labels.begin(), batch.labels.end()).size() == 10);
    CHECK(std::ranges::all_of(batch.inputs, [](float value) { return std::isfinite(value); }));
  }
}

TEST_CASE("data that there is not is refused with what there is", "[sim][data]") {
  const TempFolder folder;
  CHECK_THAT(refused("no such data"),
             Contains("'no such data'") && Contains("digits, blobs") && Contains("IDX"));
  CHECK_THAT(refused(""), Contains("''"));
  CHECK_THAT(refused((folder / "x").parent_path()), Contains("no data set was found"));
  CHECK_THAT(refused("\x1b[31m"), Contains("\\x1B"));
  REQUIRE(data::data_names().size() == 6);
  for (const auto& [name, what] : data::data_names()) CHECK_FALSE(what.empty());
}

}  // namespace test_data
