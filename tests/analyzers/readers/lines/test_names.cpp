// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/lines/names.hpp"

#include <initializer_list>
#include <set>
#include <string>

#include "catch.hpp"

namespace halfscope::analyzers::readers::lines::test_names {
namespace {

void expect(Meaning meaning, std::initializer_list<const char*> tags) {
  for (const char* tag : tags) {
    INFO(tag);
    CHECK(meaning_of_tag(tag).meaning == meaning);
  }
}

TEST_CASE("tags that frameworks write mean what they say", "[names]") {
  using enum Meaning;
  expect(loss, {"loss", "Loss/train", "train/loss", "train_loss", "lm loss", "lm-loss", "LOSS",
                "Train/Samples/train_loss", "training/loss", "run-7 - loss", "D/loss",
                "run 7 - train_loss_step", "Train_Samples_train_loss", "test run - loss"});
  expect(learning_rate,
         {"lr", "learning-rate", "train/lr", "lr/train", "Train/Samples/lr", "train/learning_rate",
          "lr-AdamW", "lr-AdamW/pg1", "run - lr-AdamW/pg1", "run - lr"});
  expect(loss_scale, {"loss_scale", "loss-scale", "grad_scale", "amp/scale", "scale",
                      "Train/Samples/loss_scale", "train/grad_scale", "a - b - loss_scale",
                      "GradScaler/scale", "my/amp/scale", "Train_Samples_loss_scale"});
  expect(overflow, {"found_inf", "amp/found_inf"});
  expect(gradient_norm, {"grad_norm", "train/grad_norm", "gnorm", "grad-norm"});
  expect(evaluation_loss, {"eval/loss", "eval_loss", "Loss/val", "loss/test", "valid/loss",
                           "validation/lm loss", "run - eval/loss", "eval/a/loss"});
  expect(none, {"",
                "train",
                "val",
                "/",
                "accuracy",
                "train/accuracy",
                "image/scale",
                "pg1",
                "loss_weight",
                "train/train",
                "weight/conv1",
                "layer/scale",
                "lr-AdamW/pg2",
                "aux/loss_a",
                "test_loss_b",
                "run-7 - loss__MIN",
                "run-loss - x",
                "step",
                "train/epoch",
                "val/lr"});
}

TEST_CASE("tags mean what console logs call so", "[names]") {
  using enum Meaning;
  expect(gradient_norm, {"grad_norm_total", "train/total_norm", "run - norm", "global_norm"});
  expect(loss, {"cost", "train/nll_loss", "run - ctc_loss", "total_loss", "loss_total",
                "D/lm_loss_value", "avr_loss", "reduced_train_loss"});
  expect(evaluation_loss, {"val/ce_loss", "test_loss", "dev/loss"});
  expect(log2_loss_scale, {"lg_loss_scale", "train/lg_loss_scale"});
  expect(loss_scale, {"lossscale", "cost-scaling factor", "fp16 grad scale"});
  expect(learning_rate, {"L.r.", "optim/lr0", "learningrate"});
  expect(overflow, {"overflow cond"});
  expect(nan_iterations, {"number of nan iterations"});
  expect(skipped, {"skipped_steps", "train/skipped"});
  expect(skipped_interval, {"number of skipped iterations"});
  // Of a layer, of one loss of several: not known by their last part.
  expect(none, {"layers/norm", "D/ce_loss", "fp8/overflow", "layers/nan_count", "data/skipped",
                "logit_scale"});
}

TEST_CASE("of several tags the surer name is used, then the one of fewer parts", "[names]") {
  const auto rank = [](const char* tag) { return meaning_of_tag(tag).rank; };
  CHECK(rank("total_loss") < rank("loss"));
  CHECK(rank("loss") < rank("train/loss"));
  CHECK(rank("a/b/c/loss") < rank("nll_loss"));
  CHECK(rank("run 1 - train/loss") == rank("run 2 - train/loss"));
}

TEST_CASE("a column of steps has a name that console logs have for steps", "[names]") {
  const char* const by_rank[] = {"global_step", "Step", "batch", "epoch"};
  for (std::size_t i = 0; i < 4; ++i) CHECK(step_rank(by_rank[i]) == static_cast<int>(i));
  for (const char* name : {"trainer/global_step", "_step", "iteration", "iter", "num_updates",
                           "itr", "steps", "Global Step", "total_it"}) {
    INFO(name);
    CHECK(step_rank(name).has_value());
  }
  for (const char* name : {"train", "loss", "val_step", "total steps", "run - step", ""}) {
    INFO(name);
    CHECK(!step_rank(name).has_value());
  }
}

TEST_CASE("every meaning of a tag has a name", "[names]") {
  std::set<std::string_view> names;
  for (int i = static_cast<int>(Meaning::loss); i <= static_cast<int>(Meaning::skipped_interval);
       ++i) {
    names.insert(name_of(static_cast<Meaning>(i)));
  }
  CHECK(names.size() == 8);  // two say the loss scale, two the number of skipped steps
  CHECK(!names.contains(""));
}

}  // namespace
}  // namespace halfscope::analyzers::readers::lines::test_names
