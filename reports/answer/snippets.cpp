// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/snippets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "halfscope/policy/policy.hpp"
#include "reports/answer/policy_paste.hpp"

namespace halfscope::reports::answer {

using analyzers::recommend::Recommendation;

namespace {

/// Returns 2^log2 as a Python literal: digits for 0 to 40, else a power.
std::string number(int log2) {
  if (log2 >= 0 && log2 <= 40) return fmt::format("{}.0", std::uint64_t{1} << log2);
  return fmt::format("2.0**{}", log2);
}

/// Lines of one framework. `fixed`: for a static scale, with {0} as the scale in Python and {1} in
/// JSON; empty if its scale is never static. `policy`: the policy of its dynamic scaling, whose
/// lines are in policy_paste. `note` is for both, `fixed_note` for the static scale.
struct ScaleTemplate {
  std::string_view framework, label, fixed, policy, note = "", fixed_note = "";
};

constexpr ScaleTemplate kScaleTemplates[] = {
    {"pytorch", "PyTorch",
     "scaler = torch.amp.GradScaler(\"cuda\", init_scale={0}, growth_interval=2**31 - 1)  "
     "# never grows",
     "torch", "Save the scaler's state_dict() with the model's.",
     "GradScaler is never quite static: a step that overflows halves the scale."},
    {"lightning", "Lightning",
     "from lightning.pytorch.plugins.precision import MixedPrecision\n"
     "scaler = torch.amp.GradScaler(\"cuda\", init_scale={0}, growth_interval=2**31 - 1)  "
     "# never grows\n"
     "trainer = lightning.Trainer(plugins=[MixedPrecision(\"16-mixed\", \"cuda\", scaler)])",
     "torch"},
    {"accelerate", "Hugging Face Accelerate",
     "from accelerate.utils import GradScalerKwargs\n"
     "scaling = GradScalerKwargs(init_scale={0}, growth_interval=2**31 - 1)  # never grows\n"
     "accelerator = Accelerator(mixed_precision=\"fp16\", kwargs_handlers=[scaling])",
     "torch"},
    {"transformers", "Hugging Face Trainer",
     "trainer.accelerator.scaler = torch.amp.GradScaler(\"cuda\", init_scale={0}, "
     "growth_interval=2**31 - 1)  # never grows",
     "torch"},
    {"tensorflow", "TensorFlow (Keras 2)",
     "optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer, dynamic=False, "
     "initial_scale={0})",
     "keras2",
     "For TensorFlow up to 2.15, and later with TF_USE_LEGACY_KERAS=1; else tf.keras is Keras 3."},
    {"keras", "Keras 3",
     "optimizer = keras.mixed_precision.LossScaleOptimizer(optimizer, initial_scale={0}, "
     "dynamic_growth_steps=2**31 - 1)  # never grows",
     "keras3"},
    {"fastai", "fastai",
     "learn = learn.to_fp16(init_scale={0}, growth_interval=2**31 - 1)  # never grows", "torch"},
    {"deepspeed", "DeepSpeed", R"("fp16": {{"enabled": true, "loss_scale": {1}}})", "deepspeed",
     "For the configuration file.", "Steps that overflow are skipped at a static scale too."},
    {"megatron", "Megatron-LM", "--fp16 --loss-scale {1}", "megatron", "For the command line.",
     "Steps that overflow are skipped at a static scale too."},
    {"nemo", "NeMo",
     "precision = nemo.lightning.MegatronMixedPrecision(precision=\"16-mixed\", "
     "fp16_loss_scale={0})",
     "megatron", "A plugin of nemo.lightning.Trainer.",
     "Steps that overflow are skipped at a static scale too."},
    {"fairseq", "fairseq", "", "fairseq", "For the command line."},  // its scale is never static
    {"apex", "NVIDIA Apex",
     "model, optimizer = amp.initialize(model, optimizer, opt_level=\"O2\", loss_scale={0})",
     "apex", "Apex's amp was removed in 2025.", "A static scale is never checked for overflow."},
    {"mxnet", "MXNet (Gluon)",
     "loss_fn = gluon.loss.SoftmaxCrossEntropyLoss(weight={0})\n"
     "trainer = gluon.Trainer(net.collect_params(), \"sgd\",\n"
     "                        {{\"multi_precision\": True, \"rescale_grad\": 1 / {0}}})",
     "mxnet", "", "A static scale is never checked for overflow."},
    {"nnabla", "NNabla",
     "loss.backward({0}, clear_buffer=True)\n"
     "solver.scale_grad(1 / {0})  # before solver.update()",
     "nnabla", "", "A static scale is never checked for overflow."},
    {"jax", "JAX (Flax)",
     "from flax.training.dynamic_scale import DynamicScale\n"
     "dynamic_scale = DynamicScale(scale={0}, growth_interval=2**31 - 1)  # never grows",
     "flax", "", "DynamicScale is never quite static: a step that overflows halves the scale."},
    {"jmp", "JAX (jmp)", "loss_scale = jmp.StaticLossScale(jnp.float32({0}))", "jmp", "",
     "A static scale is not changed by an overflow: skip such a step by jmp.all_finite and "
     "jmp.select_tree."},
};

std::string fixed_lines(const ScaleTemplate& form, int log2) {
  return fmt::format(fmt::runtime(form.fixed), number(log2),
                     fmt::format("{}", std::ldexp(1.0, log2)));  // JSON has no powers
}

/// Returns the framework's lines for dynamic settings. Empty if none are advised for its policy.
std::optional<Paste> dynamic_lines(const ScaleTemplate& form, const Recommendation& advice) {
  const auto same = [&](const analyzers::recommend::DynamicAdvice& dynamic) {
    return policy::info_of(dynamic.policy).name == form.policy;
  };
  const auto found = std::ranges::find_if(advice.dynamic, same);
  return found == advice.dynamic.end() ? std::nullopt : paste_of(found->policy, form.framework);
}

std::string joined(std::string_view a, std::string_view b) {
  return fmt::format("{}{}{}", a, a.empty() || b.empty() ? "" : " ", b);
}

constexpr std::string_view kFairseq2 = "fairseq2";

/// Returns true if the settings come from a scale that fairseq2 printed.
bool of_fairseq2(const analyzers::Study& study) {
  const auto& dynamic = study.advice.dynamic;
  return !dynamic.empty() && dynamic.front().from_run_scale &&
         study.tool == analyzers::frames::Tool::fairseq2;
}

/// Returns lines for the run's own policy; empty if kScaleTemplates already has it.
std::optional<Snippet> own_lines(const analyzers::Study& study) {
  const Recommendation& advice = study.advice;
  if (advice.dynamic.empty()) return std::nullopt;
  const policy::Policy& policy = advice.dynamic.front().policy;
  if (of_fairseq2(study)) {
    const auto paste = paste_of(policy, kFairseq2);
    if (!paste) return std::nullopt;
    return Snippet{kFairseq2, paste->where, "fairseq", {}, {paste->lines, paste->note}};
  }
  const std::string_view name = policy::info_of(policy).name;
  if (std::ranges::find(kScaleTemplates, name, &ScaleTemplate::policy) !=
      std::end(kScaleTemplates)) {
    return std::nullopt;
  }
  const auto paste = paste_of(policy);
  if (!paste) return std::nullopt;
  return Snippet{name, paste->where, name, {}, {paste->lines, paste->note}};
}

/// Returns the framework that wrote a log without gradients. Empty if its policy already names it.
std::string_view framework_of(const analyzers::Study& study) {
  const auto& dynamic = study.advice.dynamic;
  if (dynamic.empty() || !dynamic.front().from_run_scale) return "";
  switch (study.tool) {
    case analyzers::frames::Tool::transformers: return "transformers";
    case analyzers::frames::Tool::nemo: return "nemo";
    case analyzers::frames::Tool::fairseq2: return kFairseq2;
    default: return "";
  }
}

}  // namespace

std::vector<std::string> framework_names() {
  std::vector<std::string> names;
  for (const ScaleTemplate& t : kScaleTemplates) names.emplace_back(t.framework);
  return names;
}

bool worth_pasting(const analyzers::Study& study) {
  const Recommendation& advice = study.advice;
  const bool refused = advice.may_use && !advice.may_use->yes();
  const bool any = advice.static_log2 || !advice.dynamic.empty();
  return study.analysis.target.name == "binary16" && any && !refused && !study.carried_scale;
}

std::vector<Snippet> snippets(const analyzers::Study& study) {
  std::vector<Snippet> all;
  if (!worth_pasting(study)) return all;
  const Recommendation& advice = study.advice;
  for (const ScaleTemplate& form : kScaleTemplates) {
    Snippet snippet{form.framework, std::string(form.label), form.policy};
    const bool bound = advice.all_steps_censored() || advice.unread.lacking != 0;
    if (advice.static_log2 && !bound && !form.fixed.empty()) {
      snippet.fixed = {fixed_lines(form, *advice.static_log2), joined(form.fixed_note, form.note)};
    }
    if (const auto paste = dynamic_lines(form, advice)) {
      snippet.dynamic = {paste->lines, joined(form.note, paste->note)};
    }
    if (!snippet.first().lines.empty()) all.push_back(std::move(snippet));
  }
  if (auto own = own_lines(study)) all.push_back(std::move(*own));
  return all;
}

const Snippet* snippet_of(const std::vector<Snippet>& snippets, const analyzers::Study& study,
                          std::string_view framework) {
  if (snippets.empty()) return nullptr;
  if (framework.empty()) framework = framework_of(study);
  const auto found = std::ranges::find_if(snippets, [&](const Snippet& snippet) {
    if (!framework.empty()) return snippet.framework == framework;
    const auto& dynamic = study.advice.dynamic;
    return !dynamic.empty() && snippet.policy == policy::info_of(dynamic.front().policy).name;
  });
  if (found != snippets.end()) return &*found;
  return framework.empty() ? &snippets.front() : nullptr;
}

}  // namespace halfscope::reports::answer
