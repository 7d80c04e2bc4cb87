// SPDX-License-Identifier: Apache-2.0
// Settings and state of the policies of PyTorch's world.
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "policy/patterns.hpp"

namespace test_policies_torch_settings {

using namespace halfscope::policy;

TEST_CASE("Policies come in the documented order", "[policy]") {
  std::vector<std::string_view> names;
  for (const Policy& policy : all()) names.push_back(info_of(policy).name);
  CHECK(names == std::vector<std::string_view>{"static",
                                               "torch",
                                               "apex",
                                               "apex-legacy",
                                               "apex-hysteresis",
                                               "megatron",
                                               "colossalai",
                                               "deepspeed",
                                               "deepspeed-fused",
                                               "fairseq",
                                               "metaseq",
                                               "fastai1",
                                               "fastai2",
                                               "tf1",
                                               "keras2",
                                               "keras3",
                                               "tf-contrib",
                                               "os2s-backoff",
                                               "os2s-logmax",
                                               "nnabla",
                                               "nnabla-tutorial",
                                               "chainer",
                                               "mxnet",
                                               "mxnet-static",
                                               "jmp",
                                               "flax",
                                               "paddle",
                                               "mindspore",
                                               "mindspore-cell",
                                               "nvcaffe",
                                               "als",
                                               "te-delayed"});
}

TEST_CASE("DeepSpeed: a key of the configuration file changes the others' defaults", "[policy]") {
  const auto value = [](const char* text, std::string_view name) {
    for (const auto& [key, found] : settings_of(make(text))) {
      if (key == name) return found;
    }
    throw std::out_of_range(std::string(name));
  };
  CHECK(scale_of(make("deepspeed")) == 0x1p32);
  CHECK(value("deepspeed", "delayed_shift") == Value(std::int64_t{1}));
  for (const char* text :
       {"deepspeed,loss_scale_window=1000", "deepspeed,min_loss_scale=1", "deepspeed,hysteresis=2",
        "deepspeed,initial_scale_power=16", "deepspeed,consecutive_hysteresis=false"}) {
    INFO(text);
    CHECK(scale_of(make(text)) == 65536);
    CHECK(value(text, "delayed_shift") == Value(std::int64_t{2}));
    CHECK(value(text, "scale_window") == Value(std::int64_t{1000}));
    CHECK(value(text, "min_scale") == Value(1.0));
    CHECK(text_of(make(text_of(make(text)))) == text_of(make(text)));
  }
  CHECK(scale_of(make("deepspeed,initial_scale=2^32,hysteresis=2")) == 0x1p32);
  CHECK(scale_of(make("deepspeed,initial_scale_power=20")) == 0x1p20);
  CHECK(value("deepspeed,hysteresis=4", "delayed_shift") == Value(std::int64_t{4}));
  CHECK(value("deepspeed,loss_scale_window=7", "scale_window") == Value(std::int64_t{7}));
  CHECK(value("deepspeed,min_loss_scale=8", "min_scale") == Value(8.0));
  CHECK(scale_of(make("deepspeed,delayed_shift=2,consecutive_hysteresis=true")) == 0x1p32);
  CHECK(scale_of(make("deepspeed-fused")) == 65536);
  CHECK(scale_of(make("deepspeed-fused,initial_scale_power=32")) == 0x1p32);
  // Never looked at without ZeRO.
  CHECK(used("deepspeed-fused,hysteresis=3", "OO.") == std::vector{16, 15, 14});
  // Started anew it is the same.
  Policy again = make("deepspeed,initial_scale_power=20,hysteresis=1");
  start(again);
  CHECK(scale_of(again) == 0x1p20);
  CHECK_THROWS_WITH(make("deepspeed,delayed_shift=2,hysteresis=2"),
                    "policy deepspeed: hysteresis and delayed_shift are the same setting; give one "
                    "of them");
  CHECK_THROWS_WITH(
      make("deepspeed,initial_scale_power=1024"),
      "policy deepspeed: initial_scale_power: 2 to that power is not finite; expected at "
      "most 1023");
}

TEST_CASE("Factors are of the type the framework has them in", "[policy]") {
  // 3 * 0.3: the factor rounded to binary32 first, or only the product.
  const auto after_one = [](const char* text) { return run(text, 1, always_nan).final; };
  CHECK(after_one("torch,init_scale=3,backoff_factor=0.3") == 0x1.ccccccp-1);
  CHECK(after_one("apex-hysteresis,init_scale=3,backoff_factor=0.3,hysteresis=1") == 0x1.ccccccp-1);
  CHECK(after_one("colossalai,initial_scale=3,backoff_factor=0.3,hysteresis=1") == 0x1.cccccep-1);
  CHECK(after_one("megatron,initial_scale=3,min_scale=0.1,backoff_factor=0.3,hysteresis=1") ==
        0x1.cccccep-1);
  CHECK(after_one("fastai2,max_loss_scale=1,div_factor=3") == 1.0 / 3);
  CHECK(after_one("deepspeed,init_scale=1,min_scale=0,scale_factor=3") == 1.0 / 3);
  CHECK(after_one("fairseq,init_scale=1,scale_factor=3") == 1.0 / 3);
  CHECK(after_one("apex-legacy,init_scale=4,scale_factor=3") == 4.0 / 3);
  CHECK(after_one("apex,init_scale=12,scale_factor=3") == 6);  // taken and not used
}

TEST_CASE("What no binary32 scale can be is refused where the framework has one", "[policy]") {
  for (const char* text :
       {"torch,init_scale=1e300", "torch,init_scale=2^128", "keras3,initial_scale=1e39",
        "torch,init_scale=1e-300", "colossalai,min_scale=1e300", "os2s-backoff,scale_max=2^200",
        "flax,scale=2^-150"}) {
    INFO(text);
    CHECK_THROWS_AS(make(text), std::invalid_argument);
    try {
      make(text);
    } catch (const std::invalid_argument& error) {
      CHECK(std::string(error.what()).find("a number of binary32's range") != std::string::npos);
    }
  }
  CHECK(scale_of(make("torch,init_scale=2^127")) == 0x1p127);
  CHECK(scale_of(make("torch,init_scale=2^-149")) == 0x1p-149);
  CHECK(scale_of(make("flax,minimum_scale=1e-300,scale=1")) == 1);  // 0 there: no floor
  CHECK(scale_of(make("deepspeed,init_scale=1e300")) == 1e300);     // a Python float
}

TEST_CASE("Settings that the framework itself refuses are refused, and why", "[policy]") {
  for (const char* text :
       {"torch,growth_factor=1", "torch,growth_factor=0.5", "torch,backoff_factor=1",
        "megatron,growth_factor=1", "megatron,backoff_factor=2", "colossalai,growth_factor=0.9",
        "paddle,incr_ratio=1", "paddle,decr_ratio=1.5", "megatron,initial_scale=2,min_scale=4",
        "mindspore,init_loss_scale=0.5"}) {
    INFO(text);
    CHECK_THROWS_AS(make(text), std::invalid_argument);
    try {
      make(text);
    } catch (const std::invalid_argument& error) {
      CHECK(std::string(error.what()).find("the framework ") != std::string::npos);
    }
  }
  CHECK_NOTHROW(make("torch,growth_factor=1.5,backoff_factor=0.9"));
  CHECK_NOTHROW(make("apex-hysteresis,growth_factor=1"));  // a kernel, which asserts nothing
  CHECK_NOTHROW(make("megatron,initial_scale=1,min_scale=1"));
}

TEST_CASE("Short texts make the same policy", "[policy]") {
  for (const char* text : {"torch,growth_interval=4", "deepspeed,hysteresis=2", "deepspeed",
                           "deepspeed,consecutive_hysteresis=true", "fastai1,dynamic=false",
                           "fastai1,dynamic=false,loss_scale=65536", "colossalai,min_scale=1"}) {
    const Policy policy = make(text);
    INFO(short_text_of(policy));
    CHECK(text_of(make(short_text_of(policy))) == text_of(policy));
  }
  CHECK(short_text_of(make("torch,growth_interval=4,init_scale=2^16")) ==
        "torch,growth_interval=4");
}

TEST_CASE("Limits are those of the settings, or of the framework", "[policy]") {
  CHECK(limits_of(make("torch")).floor == 0);
  CHECK(std::isinf(limits_of(make("torch")).ceiling));
  CHECK(limits_of(make("megatron,min_scale=4")).floor == 4);
  CHECK(!limits_of(make("megatron")).floor_is_fixed);
  CHECK(limits_of(make("apex")).ceiling == 0x1p24);
  CHECK(limits_of(make("os2s-backoff,scale_max=2^10")).ceiling == 1024);
  CHECK(limits_of(make("paddle")).floor == 1);
  CHECK(limits_of(make("paddle,graph=dynamic")).floor == 0);
  CHECK(limits_of(make("deepspeed-fused")).whole_numbers);
  // A fixed floor is where the scale stays, however many steps overflow.
  for (const Policy& policy : all()) {
    const Limits limits = limits_of(policy);
    if (!limits.floor_is_fixed) continue;
    Policy down = policy;
    for (int step = 0; step < 500; ++step) advance(down, {true, std::nan("")});
    INFO(info_of(policy).name);
    CHECK(scale_of(down) == limits.floor);
  }
}

TEST_CASE("A checkpoint carries all that decides", "[policy]") {
  // 0.5, sometimes enough for an overflow at 2^15, rarely NaN.
  const auto magnitude = [](int step) {
    const unsigned mixed = (static_cast<unsigned>(step) + 7U) * 2654435761U >> 16;
    return mixed % 61 == 0 ? std::nan("") : mixed % 7 == 0 ? 3.0 : 0.5;
  };
  for (const char* text :
       {"torch,growth_interval=4", "apex,scale_window=4", "apex-legacy,scale_window=4",
        "apex-hysteresis,growth_interval=4", "megatron,growth_interval=4",
        "colossalai,growth_interval=4", "deepspeed,hysteresis=3,loss_scale_window=4",
        "deepspeed-fused,scale_window=4", "fairseq,scale_window=4,tolerance=0.3",
        "metaseq,scale_window=4", "fastai1,max_noskip=4", "fastai2,scale_wait=4"}) {
    for (int split = 0; split < 60; ++split) {
      Policy first = make(text);
      for (int step = 0; step < split; ++step) {
        advance(first, {overflows(magnitude(step), scale_of(first)), magnitude(step)});
      }
      Policy second = make(text);
      restore(second, state_of(first));
      const auto rest = [&](int step) { return magnitude(split + step); };
      INFO(text << ", cut at " << split);
      const Run left = run(first, 60, rest), right = run(second, 60, rest);
      CHECK(left.scale == right.scale);
      CHECK(left.final == right.final);
      CHECK(left.skipped == right.skipped);
    }
  }
}

}  // namespace test_policies_torch_settings
