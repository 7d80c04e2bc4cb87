// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/snippets.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "reports/answer/paste_notes.hpp"

namespace halfscope::reports::answer {
namespace {

/// 2^log2 as Python and JSON read it: in digits where people read those, exactly in any case.
std::string number(int log2) {
  if (log2 >= 0 && log2 <= 40) return fmt::format("{}.0", std::uint64_t{1} << log2);
  return fmt::format("2.0**{}", log2);
}

/// Small powers have no Python expression in JSON: shortest digits are exact for powers of two.
std::string json_number(int log2) { return fmt::format("{}", std::ldexp(1.0, log2)); }

/// A framework's lines, with {0} the scale, {1} its reciprocal, {2} its log2, {3} the growth
/// interval and {4} the scale as JSON writes it.
struct Template {
  std::string_view framework, label, fixed, dynamic, note;
  std::string_view shared_note = "";  ///< behind it
};

constexpr Template kTemplates[] = {
    {"pytorch", "PyTorch",
     "scaler = torch.amp.GradScaler(\"cuda\", init_scale={0}, growth_interval=2**31 - 1)  "
     "# never grows",
     "scaler = torch.amp.GradScaler(\"cuda\", init_scale={0}, growth_interval={3})",
     "GradScaler is never quite static: a step that overflows halves the scale. Save its "
     "state_dict() with the model's.",
     kOlderPyTorch},
    {"lightning", "Lightning",
     "from lightning.pytorch.plugins.precision import MixedPrecision\n"
     "scaler = torch.amp.GradScaler(\"cuda\", init_scale={0}, growth_interval=2**31 - 1)  "
     "# never grows\n"
     "trainer = lightning.Trainer(plugins=[MixedPrecision(\"16-mixed\", \"cuda\", scaler)])",
     "from lightning.pytorch.plugins.precision import MixedPrecision\n"
     "scaler = torch.amp.GradScaler(\"cuda\", init_scale={0}, growth_interval={3})\n"
     "trainer = lightning.Trainer(plugins=[MixedPrecision(\"16-mixed\", \"cuda\", scaler)])",
     kLightningPrecision},
    {"accelerate", "Hugging Face Accelerate",
     "from accelerate.utils import GradScalerKwargs\n"
     "scaling = GradScalerKwargs(init_scale={0}, growth_interval=2**31 - 1)  # never grows\n"
     "accelerator = Accelerator(mixed_precision=\"fp16\", kwargs_handlers=[scaling])",
     "from accelerate.utils import GradScalerKwargs\n"
     "scaling = GradScalerKwargs(init_scale={0}, growth_interval={3})\n"
     "accelerator = Accelerator(mixed_precision=\"fp16\", kwargs_handlers=[scaling])",
     ""},
    {"transformers", "Hugging Face Trainer",
     "trainer.accelerator.scaler = torch.amp.GradScaler(\"cuda\", init_scale={0}, "
     "growth_interval=2**31 - 1)  # never grows",
     "trainer.accelerator.scaler = torch.amp.GradScaler(\"cuda\", init_scale={0}, "
     "growth_interval={3})",
     kTransformersOrder},
    {"tensorflow", "TensorFlow (Keras 2)",
     "optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer, dynamic=False, "
     "initial_scale={0})",
     "optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer, initial_scale={0}, "
     "dynamic_growth_steps={3})",
     "For TensorFlow up to 2.15, and later with TF_USE_LEGACY_KERAS=1; else tf.keras is Keras 3. "
     "The "
     "dynamic scale never falls below 1."},
    {"keras", "Keras 3",
     "optimizer = keras.mixed_precision.LossScaleOptimizer(optimizer, initial_scale={0}, "
     "dynamic_growth_steps=2**31 - 1)  # never grows",
     "optimizer = keras.mixed_precision.LossScaleOptimizer(optimizer, initial_scale={0}, "
     "dynamic_growth_steps={3})",
     kKerasWraps},
    {"fastai", "fastai",
     "learn = learn.to_fp16(init_scale={0}, growth_interval=2**31 - 1)  # never grows",
     "learn = learn.to_fp16(init_scale={0}, growth_interval={3})", kFastaiArguments},
    {"deepspeed", "DeepSpeed", R"("fp16": {{"enabled": true, "loss_scale": {4}}})",
     R"("fp16": {{"enabled": true, "loss_scale": 0, "initial_scale_power": {2}, )"
     R"("loss_scale_window": {3}, "hysteresis": 1, "min_loss_scale": 1}})",
     "For the configuration file. Steps that overflow are skipped at a static scale too; the "
     "dynamic scale is an integer power of two and never falls below 1."},
    {"apex", "NVIDIA Apex",
     "model, optimizer = amp.initialize(model, optimizer, opt_level=\"O2\", loss_scale={0})",
     "model, optimizer = amp.initialize(model, optimizer, opt_level=\"O2\", "
     "loss_scale=\"dynamic\", max_loss_scale={0})",
     "A static scale is never checked for overflow. The dynamic one starts at the smaller of 2^16 "
     "and max_loss_scale, and doubles every 2000 clean steps. Apex's amp was removed in 2025."},
    {"mxnet", "MXNet (Gluon)",
     "loss_fn = gluon.loss.SoftmaxCrossEntropyLoss(weight={0})\n"
     "trainer = gluon.Trainer(net.collect_params(), \"sgd\",\n"
     "                        {{\"multi_precision\": True, \"rescale_grad\": 1 / {0}}})",
     "amp.init_trainer(trainer)\n"
     "trainer._amp_loss_scaler._loss_scale = trainer._amp_loss_scaler._next_loss_scale = {0}\n"
     "trainer._amp_loss_scaler._scale_seq_len = {3}",
     "A static scale is never checked for overflow. amp has no arguments for the dynamic one: its "
     "attributes are set, after amp.init() and init_trainer()."},
    {"nnabla", "NNabla",
     "loss.backward({0}, clear_buffer=True)\n"
     "solver.scale_grad(1 / {0})  # before solver.update()",
     "updater = DynamicLossScalingUpdater(solver, loss, data_feeder, scale={0}, N={3})",
     "A static scale is never checked for overflow. The updater does not skip a step that "
     "overflows: it halves the scale and tries again with the next batch."},
};

std::string fill(std::string_view text, int log2, std::uint64_t growth_interval) {
  return fmt::format(fmt::runtime(text), number(log2), number(-log2), log2, growth_interval,
                     json_number(log2));
}

std::string note_of(const Template& t) {
  const bool both = !t.note.empty() && !t.shared_note.empty();
  return fmt::format("{}{}{}", t.note, both ? " " : "", t.shared_note);
}

}  // namespace

std::vector<std::string> framework_names() {
  std::vector<std::string> names;
  for (const Template& t : kTemplates) names.emplace_back(t.framework);
  return names;
}

std::vector<Snippet> snippets(const analyzers::recommend::Recommendation& advice) {
  std::vector<Snippet> all;
  if (!advice.static_log2) return all;
  for (const Template& t : kTemplates) {
    Snippet snippet{t.framework, t.label, "", "", note_of(t)};
    if (!advice.no_step_held()) {
      snippet.fixed = fill(t.fixed, *advice.static_log2, 0);
    }
    // DeepSpeed's dynamic scale starts at an integer, and none is below 1.
    const bool below_one =
        t.framework == "deepspeed" && advice.dynamic && advice.dynamic->init_log2 < 0;
    if (advice.dynamic && !below_one) {
      snippet.dynamic = fill(t.dynamic, advice.dynamic->init_log2, advice.dynamic->growth_interval);
    }
    all.push_back(std::move(snippet));
  }
  return all;
}

std::string pytorch_static_scale(int log2) { return fill(kTemplates[0].fixed, log2, 0); }

}  // namespace halfscope::reports::answer
