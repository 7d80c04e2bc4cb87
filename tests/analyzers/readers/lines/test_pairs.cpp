// SPDX-License-Identifier: Apache-2.0
// Pairs of a name and a value, as programs print them, and what their names mean.
#include "analyzers/readers/lines/pairs.hpp"

#include <cmath>

#include "analyzers/readers/lines/blocks.hpp"
#include "analyzers/readers/lines/columns.hpp"
#include "analyzers/readers/lines/names.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::readers::test_pairs {
namespace {

using lines::Meaning;

/// The value of the only pair of a name.
std::optional<double> value_of(std::string_view line, std::string_view name) {
  std::optional<double> found;
  for (const lines::Pair& pair : lines::pairs_in(line)) {
    if (pair.name == name && !found) found = pair.value;
  }
  return found;
}

TEST_CASE("a pair, whatever stands between its name and its value") {
  struct Row {
    const char* line;
    const char* name;
    std::optional<double> value;
  };
  const Row rows[] = {{"loss=1.5, lr=2", "loss", 1.5},
                      {"'grad_norm': 0.25}", "grad_norm", 0.25},
                      {"\"gnorm\": \"3\"", "gnorm", 3},
                      {"[('loss', 24.5), ('lr', 1)]", "lr", 1},
                      {"| loss_scale 64 |", "loss_scale", 64},
                      {"lr=[0.5, 0.1]", "lr", 0.5},
                      {"loss[loss=0.5, over 3.00 frames]", "loss", 0.5},
                      {"nll_loss=4, loss=5", "loss", 5},
                      {"| moe loss: 4 | loss: 5", "loss", 5},
                      {"Loss nan5  LR 0.5  Global Step: 20", "Global Step", 20},
                      {"INFO - root - step: 14  loss: 3", "step", 14},
                      {"memory(GiB): 61.25, loss: 3", "memory", 61.25},
                      {"iter 10/ 30 | loss 2", "iter", 10},
                      {"Time 149.5s : gNorm 0.5", "gNorm", 0.5},
                      {"Sen. 94,495,934 : Cost 2", "Sen.", 94495934},
                      {"overflow cond: True", "overflow cond", 1},
                      {"number of nan iterations:   3 |", "number of nan iterations", 3},
                      {"loss: 5.5 (inf)", "", INFINITY},
                      {"val_loss=4", "loss", std::nullopt},
                      {"loss: info", "loss", std::nullopt},
                      {"loss", "loss", std::nullopt}};
  for (const Row& row : rows) {
    INFO(row.line);
    CHECK(value_of(row.line, row.name) == row.value);
  }
  CHECK(std::isnan(value_of("Cost nan : Time 1s", "Cost").value()));
  CHECK(std::isnan(value_of("loss: nanxxx, ips: 1", "loss").value()));  // PaddleOCR
}

TEST_CASE("a count is a whole number with or without thousands separators") {
  const auto count = [](std::string_view line) { return lines::pairs_in(line).at(0).count(); };
  CHECK(count("step: 1,234,567") == 1'234'567);
  CHECK(count("step: 14/300") == 14);
  CHECK_FALSE(count("step: 1.5"));
  CHECK_FALSE(count("step: nan"));
  CHECK_FALSE(count("step: 4294967296"));
  CHECK(lines::pairs_in("step: 14/ 300").at(0).total == 300);
}

TEST_CASE("a name means the same in every spelling") {
  struct Row {
    const char* name;
    Meaning meaning;
  };
  const Row rows[] = {{"LM Loss", Meaning::loss},
                      {"train/loss", Meaning::loss},
                      {"Fp16 Grad Scale", Meaning::loss_scale},
                      {"cost-scaling factor", Meaning::loss_scale},
                      {"logit_scale", Meaning::none},
                      {"lr_scale", Meaning::none},
                      {"L.r.", Meaning::learning_rate},
                      {"gNorm", Meaning::gradient_norm},
                      {"val/loss", Meaning::evaluation_loss},
                      {"valid_num_updates", Meaning::none},
                      {"loss_ctc", Meaning::loss_part},
                      {"critic/vf_loss", Meaning::loss_part},
                      {"task0 loss heatmap", Meaning::loss_part},
                      {"critic/grad_norm", Meaning::norm_part},
                      {"kl_loss_coef", Meaning::none},
                      {"best loss", Meaning::none},
                      {"packet loss", Meaning::none},
                      {"eval/ctc_loss", Meaning::evaluation_loss},
                      {"Train loss/train/total", Meaning::loss},
                      {"nupdates", Meaning::updates},
                      {"total steps", Meaning::none},
                      {"global_step/max_steps", Meaning::global_step}};
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(lines::meaning_of(row.name).meaning == row.meaning);
  }
  CHECK(lines::tells_evaluation("Epoch 1, validation: loss"));
  CHECK_FALSE(lines::tells_evaluation("/home/test/train.py: loss"));
}

TEST_CASE("a block is a table with a pair a row, or what is indented below a step") {
  CHECK(lines::may_begin_block("| loss | nan |"));
  CHECK(lines::is_in_block("| loss | nan |", "| step | 5 |"));
  CHECK_FALSE(lines::is_in_block("| loss | nan |", "-----------"));
  CHECK(lines::is_in_block("[step=12/99,epoch=0]", "    train/loss=3"));
  CHECK_FALSE(lines::is_in_block("[step=12/99,epoch=0]", "train/loss=3"));
  CHECK_FALSE(lines::is_in_block("step 12 loss 3", "    train/loss=3"));
  std::string block;
  lines::add_to_block("| loss | nan |", block);
  lines::add_to_block("    step=5", block);
  CHECK(block == "loss: nan,     step=5, ");
}

TEST_CASE("a table by columns is a line of names, then lines of values") {
  std::string pairs;
  lines::Columns blanks;
  CHECK_FALSE(blanks.read_row("0/99 2.6G 0.1", pairs));
  CHECK_FALSE(blanks.read_row("  Epoch  GPU_mem  box_loss", pairs));
  REQUIRE(blanks.read_row("  3/99  2.6G  nan  416: 100%|###| 7/7 [00:15<00:00]", pairs));
  CHECK(pairs == "Epoch: 3/99, GPU_mem: 2.6G, box_loss: nan, ");
  CHECK_FALSE(blanks.read_row("all 14 33 0 0", pairs));
  lines::Columns bars;
  CHECK_FALSE(bars.read_row("12:00 INFO - |  EPOCH|  BATCH|  LOSS|", pairs));
  REQUIRE(bars.read_row("12:01 INFO - |     13|    100| -6.25|", pairs));
  CHECK(pairs == "EPOCH: 13, BATCH: 100, LOSS: -6.25, ");
  CHECK_FALSE(bars.read_row("12:01 INFO - +-------+-------+------+", pairs));
  lines::Columns none;
  CHECK_FALSE(none.read_row("Epoch 1 loss 3", pairs));
  CHECK_FALSE(none.read_row("1 2 3", pairs));
}

}  // namespace
}  // namespace halfscope::analyzers::readers::test_pairs
