// SPDX-License-Identifier: Apache-2.0
// Bounds of attention scores. The judge multiplies the rows out, or the norms are whole numbers: 3
// and 4 have the norm 5.
#include "analyzers/overflow/attention_scores.hpp"

#include <cmath>
#include <random>

#include "analyzers/logs.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::overflow::test_attention_scores {
namespace {

using test::Values;
using Shape = std::vector<std::uint64_t>;

/// Whole tensors of one log.
class Scores {
 public:
  explicit Scores(const underflow::LogFindings& log = named("run")) { bounds_.begin(log); }
  static underflow::LogFindings named(const std::string& name) {
    underflow::LogFindings log;
    log.name = name;
    return log;
  }
  Scores& put(const std::string& name, const Values& values, const Shape& shape,
              std::int64_t step = 0, double scale = 1) {
    frames::WholeTensor tensor;
    tensor.name = name;
    tensor.role = log::role_in_name(name).value_or(log::Role::unknown);
    tensor.step = step;
    tensor.scale = scale;
    tensor.shape = shape;
    tensor.view = test::view_of(values);
    bounds_.take(tensor);
    return *this;
  }
  std::vector<AttentionScores> found(Format target = kBinary16) {
    return std::move(bounds_).finish(target);
  }

 private:
  ScoreBounds bounds_;
};

/// No less than it is, and by hardly more.
void check_norm(double found, double exact) {
  CHECK(found >= exact);
  CHECK(found <= exact * (1 + 1e-12));
}

TEST_CASE("a bound is of the longest rows", "[scores]") {
  const auto found = Scores()
                         .put("activation/attn.q_proj", {3, 4, 1, 1}, {1, 2, 2})
                         .put("activation/attn.k_proj", {0, 1, -6, 8}, {1, 2, 2})
                         .found();
  REQUIRE(found.size() == 1);
  CHECK(found[0].log == "run");
  CHECK(found[0].query == "activation/attn.q_proj");
  CHECK(found[0].key == "activation/attn.k_proj");
  CHECK(found[0].width == 2);
  check_norm(found[0].query_norm, 5);
  check_norm(found[0].key_norm, 10);
  check_norm(found[0].at_most(), 50);
  CHECK_FALSE(found[0].can_overflow);
  CHECK_FALSE(found[0].by_head);
}

TEST_CASE("the step with the largest bound is told, and the scale is undone", "[scores]") {
  const auto found = Scores()
                         .put("activation/q", {3, 4}, {1, 2}, 1)
                         .put("activation/k", {3, 4}, {1, 2}, 1)
                         .put("activation/q", {300, 400}, {1, 2}, 7)
                         .put("activation/k", {120, 160}, {1, 2}, 7, 4)
                         .put("activation/q", {INFINITY, 400}, {1, 2}, 9)
                         .put("activation/k", {3, 4}, {1, 2}, 9)
                         .put("activation/q", {3000, 400}, {1, 2}, 11)
                         .found();
  REQUIRE(found.size() == 1);
  CHECK(found[0].step == 7);
  check_norm(found[0].at_most(), 500 * 50);
}

TEST_CASE("FP16 scores can overflow from 65520 on", "[scores]") {
  const auto of = [](float k) {
    return Scores()
        .put("activation/q", {300, 400}, {1, 2})
        .put("activation/k", {0, k}, {1, 2})
        .found()
        .at(0);
  };
  CHECK_FALSE(of(131).can_overflow);  // 65500
  CHECK(of(131.25f).can_overflow);    // 65625
  const AttentionScores ten_times =
      Scores().put("activation/q", {65504}, {1}).put("activation/k", {10}, {1}).found().at(0);
  CHECK(ten_times.can_overflow);
  CHECK(ten_times.enough_head == 101);  // 100 but for the last bits, which are rounded up
  CHECK_FALSE(Scores()
                  .put("activation/q", {300, 400}, {1, 2})
                  .put("activation/k", {0, 1e6f}, {1, 2})
                  .found(kBfloat16)
                  .at(0)
                  .can_overflow);
}

TEST_CASE("rows of several heads: the longest 256 elements", "[scores]") {
  Values q(512, 0), k(512, 0);
  q[100] = q[355] = 1;  // 255 apart: one head may hold both
  q[400] = 1;
  k[0] = k[256] = 2;  // 256 apart: none can
  const auto found =
      Scores().put("activation/q", q, {1, 512}).put("activation/k", k, {1, 512}).found();
  REQUIRE(found.size() == 1);
  CHECK(found[0].by_head);
  CHECK(found[0].width == 512);
  check_norm(found[0].query_norm, std::sqrt(2.0));
  check_norm(found[0].key_norm, 2);
}

TEST_CASE("of a convolution the channels are multiplied", "[scores]") {
  underflow::LogFindings log = Scores::named("run");
  for (const char* name : {"weight/mid.q.weight", "weight/mid.k.weight"}) {
    log.tensors.emplace_back();
    log.tensors.back().name = name;
    log.tensors.back().role = log::Role::weight;
    log.tensors.back().shape = {2, 2, 1, 1};
  }
  const Values values = {3, 0, 0, 4, 0, 0};  // channels 3 0 0 and 4 0 0 of three pixels
  const auto found = Scores(log)
                         .put("activation/mid.q", values, {1, 2, 3, 1})
                         .put("activation/mid.k", values, {1, 2, 3, 1})
                         .found();
  REQUIRE(found.size() == 1);
  CHECK(found[0].width == 2);
  check_norm(found[0].at_most(), 25);
}

TEST_CASE("what is a query and its key", "[scores]") {
  const Values v = {3, 4};
  const auto are_pair = [&](const std::string& q, const std::string& k) {
    return Scores().put(q, v, {2}).put(k, v, {2}).found().size();
  };
  for (const auto& [q, k] : {std::pair{"q", "k"},
                             {"a.query", "a.key"},
                             {"a.to_q", "a.to_k"},
                             {"q_proj.0", "k_proj.0"},
                             {"a.wq", "a.wk"},
                             {"a/q-lin", "a/k-lin"},
                             {"query_layer", "key_layer"}}) {
    CAPTURE(q, k);
    CHECK(are_pair(std::string("activation/") + q, std::string("activation/") + k) == 1);
  }
  for (const auto& [q, k] : {std::pair{"a.q", "b.k"},
                             {"q_proj", "k_lin"},
                             {"q_proj", "v_proj"},
                             {"seq", "kek"},
                             {"q.act", "k.act"},
                             {"query_key_value", "query_key_value"},
                             {"q.0", "k.1"}}) {
    CAPTURE(q, k);
    CHECK(are_pair(std::string("activation/") + q, std::string("activation/") + k) == 0);
  }
  CHECK(are_pair("weight/q", "weight/k") == 0);
  CHECK(are_pair("activation_grad/q", "activation_grad/k") == 0);
}

TEST_CASE("where q and k are normalised, scores are of these", "[scores]") {
  const auto found = Scores()
                         .put("activation/a.q_proj", {300, 400}, {2})
                         .put("activation/a.k_proj", {300, 400}, {2})
                         .put("activation/a.q_norm", {3, 4}, {2})
                         .put("activation/a.k_norm", {3, 4}, {2})
                         .put("activation/b.q_proj", {6, 8}, {2})
                         .put("activation/b.k_proj", {6, 8}, {2})
                         .found();
  REQUIRE(found.size() == 2);
  CHECK(found[0].query == "activation/a.q_norm");
  check_norm(found[0].at_most(), 25);
  CHECK(found[1].query == "activation/b.q_proj");
}

TEST_CASE("squares that a sum in binary64 loses are in the bound", "[scores]") {
  Values row(201, 0x1p-27F);  // 1 + 2^-54 rounds to 1, as often as it is added
  row[0] = 1;
  const auto found =
      Scores().put("activation/q", row, {1, 201}).put("activation/k", row, {1, 201}).found();
  REQUIRE(found.size() == 1);
  CHECK(static_cast<long double>(found[0].at_most()) >= 1 + 200 * 0x1p-54L);
  check_norm(found[0].at_most(), 1);
}

TEST_CASE("no score of random rows is beyond its bound", "[scores]") {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 50; ++round) {
    const std::size_t width = 1 + random() % 40, rows = 1 + random() % 5;
    Values q(rows * width), k(rows * width);
    for (float& x : q) x = normal(random);
    for (std::size_t i = 0; i < k.size(); ++i) k[i] = round % 2 ? q[i] : normal(random);
    long double largest = 0;  // products of binary32 are exact in 64 bits
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < rows; ++j) {
        long double score = 0;
        for (std::size_t c = 0; c < width; ++c) {
          score += static_cast<long double>(q[i * width + c]) * k[j * width + c];
        }
        largest = std::max(largest, std::abs(score));
      }
    }
    const auto found = Scores()
                           .put("activation/q", q, {rows, width})
                           .put("activation/k", k, {rows, width})
                           .found();
    REQUIRE(found.size() == 1);
    CHECK(static_cast<long double>(found[0].at_most()) >= largest);
    if (round % 2) CHECK(static_cast<long double>(found[0].at_most()) <= largest * (1 + 1e-12L));
  }
}

}  // namespace
}  // namespace halfscope::analyzers::overflow::test_attention_scores
