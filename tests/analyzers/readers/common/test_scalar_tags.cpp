// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/scalar_tags.hpp"

#include <initializer_list>
#include <set>
#include <string>

#include "catch.hpp"

namespace halfscope::analyzers::readers::common::test_scalar_tags {
namespace {

void expect(std::optional<ScalarMeaning> meaning, std::initializer_list<const char*> tags) {
  for (const char* tag : tags) {
    INFO(tag);
    CHECK(scalar_meaning(tag) == meaning);
  }
}

TEST_CASE("tags that frameworks write mean what they say", "[scalar_tags]") {
  using enum ScalarMeaning;
  expect(loss, {"loss", "Loss/train", "train/loss", "train_loss", "lm loss", "lm-loss",
                "Train/Samples/train_loss", "training/loss", "LOSS"});
  expect(learning_rate, {"lr", "learning-rate", "train/lr", "lr/train", "Train/Samples/lr",
                         "train/learning_rate", "lr-AdamW", "lr-AdamW/pg1"});
  expect(loss_scale, {"loss_scale", "loss-scale", "grad_scale", "amp/scale", "scale",
                      "Train/Samples/loss_scale", "train/grad_scale"});
  expect(found_inf, {"found_inf", "amp/found_inf"});
  expect(gradient_norm, {"grad_norm", "train/grad_norm", "gnorm", "grad-norm"});
  expect(evaluation_loss, {"eval/loss", "eval_loss", "Loss/val", "loss/test", "valid/loss"});
  expect({}, {"", "train", "val", "/", "accuracy", "train/accuracy", "image/scale", "lr_", "pg1",
              "loss_weight", "train/train", "weight/conv1"});
}

TEST_CASE("every meaning has a name of its own", "[scalar_tags]") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kScalarMeanings; ++i) {
    names.insert(name_of(static_cast<ScalarMeaning>(i)));
  }
  CHECK(names.size() == kScalarMeanings);
}

}  // namespace
}  // namespace halfscope::analyzers::readers::common::test_scalar_tags
