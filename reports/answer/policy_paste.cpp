// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/policy_paste.hpp"

#include <fmt/args.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <variant>

#include "analyzers/replay/policy_study.hpp"
#include "halfscope/policy/variant.hpp"

namespace halfscope::reports::answer {

namespace {

enum class Style : std::uint8_t { python, json, flags };

/// Lines for a policy, with names of settings in braces. {more} is replaced by further arguments
/// that differ from the framework's defaults. Lines without {more} cannot be used if such a setting
/// has no place in them. `whole`: name of a setting that must be a whole number.
struct PolicyTemplate {
  std::string_view policy, framework, where;
  Style style;
  std::string_view lines, note = "", whole = "";
};

constexpr std::string_view kOlderPyTorch =
    "Before PyTorch 2.3 it is torch.cuda.amp.GradScaler, without \"cuda\".";
constexpr std::string_view kFastaiArguments =
    "to_fp16 hands its arguments to PyTorch's GradScaler.";
constexpr std::string_view kLightningPrecision =
    "Give Trainer no precision beside it: the plugin sets it.";
constexpr std::string_view kTransformersOrder =
    "After the Trainer is made with fp16=True, before trainer.train().";
constexpr std::string_view kKerasWraps =
    "Give model.compile the wrapped optimizer and auto_scale_loss=False, or it wraps it again.";
constexpr std::string_view kGraph =
    "Replayed as static graphs have it, never below 1; in a dynamic graph the scale has no floor: "
    "--policy paddle,graph=dynamic.";
constexpr std::string_view kNoWindow =
    "It has no setting for the window, which follows the numbers of workers and of batches in a "
    "step.";
constexpr std::string_view kWholePower = "It starts at an integer power of two, 1 or more.";
constexpr std::string_view kFile =
    R"("fp16": {{"enabled": true, "loss_scale": 0, "initial_scale_power": {log2}, )"
    R"("loss_scale_window": {scale_window}, "hysteresis": {delayed_shift}, )"
    R"("min_loss_scale": {min_scale}{more}}})";

/// Names of arguments, keys and flags are those of the sources that `halfscope policies --list`
/// names, and of the frameworks' argument parsers.
constexpr PolicyTemplate kPolicyTemplates[] = {
    {"torch", "", "PyTorch", Style::python,
     "scaler = torch.amp.GradScaler(\"cuda\", init_scale={init_scale}, "
     "growth_interval={growth_interval}{more})",
     kOlderPyTorch},
    {"torch", "fastai", "fastai", Style::python,
     "learn = learn.to_fp16(init_scale={init_scale}, growth_interval={growth_interval}{more})",
     kFastaiArguments},
    {"torch", "lightning", "Lightning", Style::python,
     "from lightning.pytorch.plugins.precision import MixedPrecision\n"
     "scaler = torch.amp.GradScaler(\"cuda\", init_scale={init_scale}, "
     "growth_interval={growth_interval}{more})\n"
     "trainer = lightning.Trainer(plugins=[MixedPrecision(\"16-mixed\", \"cuda\", scaler)])",
     kLightningPrecision},
    {"torch", "accelerate", "Hugging Face Accelerate", Style::python,
     "from accelerate.utils import GradScalerKwargs\n"
     "scaling = GradScalerKwargs(init_scale={init_scale}, "
     "growth_interval={growth_interval}{more})\n"
     "accelerator = Accelerator(mixed_precision=\"fp16\", kwargs_handlers=[scaling])"},
    {"torch", "transformers", "Hugging Face Trainer", Style::python,
     "trainer.accelerator.scaler = torch.amp.GradScaler(\"cuda\", init_scale={init_scale}, "
     "growth_interval={growth_interval}{more})",
     kTransformersOrder},
    {"keras2", "", "TensorFlow (Keras 2)", Style::python,
     "optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer, "
     "initial_scale={initial_scale}, dynamic_growth_steps={dynamic_growth_steps})",
     "The scale never falls below 1."},
    {"keras3", "", "Keras 3", Style::python,
     "optimizer = keras.mixed_precision.LossScaleOptimizer(optimizer, "
     "initial_scale={initial_scale}, dynamic_growth_steps={dynamic_growth_steps})",
     kKerasWraps},
    {"tf1", "", "TensorFlow 1", Style::python,
     "loss_scale = tf.train.experimental.DynamicLossScale("
     "initial_loss_scale={initial_loss_scale}, increment_period={increment_period}{more})",
     "TensorFlow 2 has it as tf.compat.v1.mixed_precision.DynamicLossScale and warns that it is "
     "deprecated; there use LossScaleOptimizer (--framework keras2)."},
    {"tf-contrib", "", "TensorFlow 1", Style::python,
     "manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager("
     "init_loss_scale={init_loss_scale}, incr_every_n_steps={incr_every_n_steps}{more})\n"
     "optimizer = tf.contrib.mixed_precision.LossScaleOptimizer(optimizer, manager)"},
    {"deepspeed", "", "DeepSpeed's configuration file", Style::json, kFile, kWholePower, "log2"},
    {"deepspeed-fused", "", "DeepSpeed's configuration file, without ZeRO", Style::json, kFile,
     kWholePower, "log2"},
    {"apex", "", "NVIDIA Apex", Style::python,
     "from apex.amp._amp_state import _amp_state\n"
     "model, optimizer = amp.initialize(model, optimizer, opt_level=\"O2\", "
     "loss_scale=\"dynamic\", min_loss_scale={min_loss_scale}, max_loss_scale={max_loss_scale})\n"
     "for scaler in _amp_state.loss_scalers:\n"
     "    scaler._loss_scale, scaler._scale_seq_len = {init_scale}, {scale_window}",
     "amp.initialize has no arguments for the start and the growth interval: attributes are set."},
    {"apex-legacy", "", "NVIDIA Apex (fp16_utils)", Style::python,
     "optimizer = FP16_Optimizer(optimizer, dynamic_loss_scale=True, dynamic_loss_args="
     "{{\"init_scale\": {init_scale}, \"scale_factor\": {scale_factor}, "
     "\"scale_window\": {scale_window}}})"},
    {"megatron", "", "Megatron-LM's command line", Style::flags,
     "--fp16 --initial-loss-scale {initial_scale} --min-loss-scale {min_scale} "
     "--loss-scale-window {growth_interval} --hysteresis {hysteresis}"},
    {"megatron", "nemo", "NeMo", Style::python,
     "precision = nemo.lightning.MegatronMixedPrecision(precision=\"16-mixed\", "
     "fp16_initial_loss_scale={initial_scale}, fp16_min_loss_scale={min_scale}, "
     "fp16_loss_scale_window={growth_interval}, fp16_hysteresis={hysteresis})",
     "NeMo 1 has native_amp_init_scale, native_amp_growth_interval and hysteresis in its "
     "configuration."},
    {"colossalai", "", "Colossal-AI", Style::python,
     "scaler = DynamicGradScaler(initial_scale={initial_scale}, "
     "growth_interval={growth_interval}{more})",
     "DynamicGradScaler is that of colossalai.amp.naive_amp.grad_scaler."},
    {"fairseq", "", "fairseq's command line", Style::flags,
     "--fp16 --fp16-init-scale {init_scale} --fp16-scale-window {scale_window} "
     "--fp16-scale-tolerance {tolerance} --min-loss-scale {min_loss_scale}{threshold_flag}",
     "", "init_scale"},
    {"fairseq", "fairseq2", "fairseq2's recipe configuration", Style::python,
     "trainer:\n  fp16_loss_scale: [{init_scale}, {min_loss_scale}]", kNoWindow},
    {"metaseq", "", "metaseq's command line", Style::flags,
     "--fp16 --fp16-init-scale {init_scale} --fp16-scale-window {scale_window} "
     "--fp16-scale-tolerance {tolerance} --min-loss-scale {min_loss_scale}{threshold_flag}",
     "", "init_scale"},
    {"fastai1", "", "fastai v1", Style::python,
     "learn = learn.to_fp16(loss_scale={loss_scale}, max_noskip={max_noskip}, dynamic=True, "
     "max_scale={max_scale})"},
    {"fastai2", "", "fastai v2 up to 2.0", Style::python,
     "learn = learn.to_fp16(max_loss_scale={max_loss_scale}, scale_wait={scale_wait}{more})",
     "Later this is to_non_native_fp16, and to_fp16 is PyTorch's scaling."},
    {"os2s-backoff", "", "OpenSeq2Seq's configuration", Style::python,
     R"("loss_scaling": "Backoff", "loss_scaling_params": {{"scale_min": {scale_min}, )"
     R"("scale_max": {scale_max}, "step_factor": {step_factor}, "step_window": {step_window}}})",
     "It starts at scale_max."},
    {"nnabla", "", "NNabla", Style::python,
     "updater = DynamicLossScalingUpdater(solver, loss, data_feeder, scale={scale}, N={N}{more})",
     "It does not skip a step that overflows: it halves the scale and tries again with the next "
     "batch."},
    {"nnabla-tutorial", "", "the loop of NNabla's tutorial", Style::python,
     "loss_scale = {loss_scale}\nscaling_factor = {scaling_factor}\ninterval = {interval}"},
    {"mxnet", "", "MXNet (Gluon)", Style::python,
     "amp.init_trainer(trainer)\n"
     "trainer._amp_loss_scaler._loss_scale = trainer._amp_loss_scaler._next_loss_scale = "
     "{init_scale}\n"
     "trainer._amp_loss_scaler._scale_seq_len = {scale_window}",
     "amp has no arguments for these: its attributes are set, after amp.init()."},
    {"jmp", "", "JAX (jmp)", Style::python,
     "loss_scale = jmp.DynamicLossScale(jnp.float32({loss_scale}), period={period}{more})"},
    {"flax", "", "JAX (Flax)", Style::python,
     "from flax.training.dynamic_scale import DynamicScale\n"
     "dynamic_scale = DynamicScale(scale={scale}, growth_interval={growth_interval}{more})"},
    {"paddle", "", "PaddlePaddle", Style::python,
     "scaler = paddle.amp.GradScaler(init_loss_scaling={init_loss_scaling}, "
     "incr_every_n_steps={incr_every_n_steps}{more})",
     kGraph},
    {"mindspore", "", "MindSpore", Style::python,
     "manager = mindspore.amp.DynamicLossScaleManager(init_loss_scale={init_loss_scale}, "
     "scale_window={scale_window}{more})"},
    {"mindspore-cell", "", "MindSpore", Style::python,
     "scale_sense = mindspore.nn.DynamicLossScaleUpdateCell(loss_scale_value={loss_scale_value}, "
     "scale_factor={scale_factor}, scale_window={scale_window})"},
};

constexpr double kNever = std::numeric_limits<std::int32_t>::max();

/// Returns an exact Python literal: digits, or 2.0**k for large and small powers of two.
std::string python_number(double value) {
  int exponent = 0;
  const bool power = value > 0 && std::frexp(value, &exponent) == 0.5;
  if (power && (exponent - 1 < -3 || exponent - 1 > 40)) {
    return fmt::format("2.0**{}", exponent - 1);
  }
  const std::string digits = fmt::format("{}", value);
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

bool whole(const policy::Value& value) {
  const auto* real = std::get_if<double>(&value);
  return real == nullptr || (std::floor(*real) == *real && std::abs(*real) < 0x1p53);
}

std::string literal(const policy::Value& value, Style style) {
  const bool python = style == Style::python;
  if (const auto* flag = std::get_if<bool>(&value)) {
    return python ? (*flag ? "True" : "False") : (*flag ? "true" : "false");
  }
  if (const auto* count = std::get_if<std::int64_t>(&value)) {
    return python && static_cast<double>(*count) == kNever ? "2**31 - 1"
                                                           : fmt::format("{}", *count);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    if (python) return python_number(*real);
    return whole(value) ? fmt::format("{:.0f}", *real) : fmt::format("{}", *real);
  }
  if (const auto* word = std::get_if<std::string_view>(&value)) return fmt::format("\"{}\"", *word);
  return python ? "None" : "null";
}

/// Returns true for settings that no framework has: they choose a variant of the replay.
bool of_halfscope(std::string_view setting) {
  return setting == "graph" || setting == "iteration_read";
}

/// The settings of a policy as lines for one framework.
class Filled {
 public:
  Filled(const PolicyTemplate& form, const policy::Policy& policy) : form_(form), policy_(policy) {}

  std::optional<std::string> lines() {
    if (!derived() || !fits()) return std::nullopt;
    put("more", more_);
    std::string out = fmt::vformat(form_.lines, named_);
    const auto interval = policy::number_of(policy_, policy::info_of(policy_).interval);
    const bool comment = form_.style == Style::python && interval == kNever;
    return comment ? out + "  # never grows" : out;
  }

 private:
  bool has(std::string_view name) const {
    return form_.lines.find("{" + std::string(name) + "}") != std::string_view::npos;
  }

  void put(std::string_view name, const std::string& text) {
    named_.push_back(fmt::arg(std::string(name).c_str(), text));  // fmt copies both arguments
  }

  /// Writes whole factors without ".0": some frameworks require integers, and all accept them.
  std::string text_of(std::string_view name, const policy::Value& value) const {
    const bool factor = name.ends_with("factor") && whole(value);
    return literal(value, factor && form_.style == Style::python ? Style::flags : form_.style);
  }

  /// Returns the first scale: the setting, limited by the ceiling that a policy applies at its
  /// start.
  std::string start_text(const policy::Value& setting) const {
    policy::Policy started = policy_;
    policy::start(started);
    const double scale = policy::scale_of(started);
    const auto* const set = std::get_if<double>(&setting);
    return literal(set != nullptr && *set > scale ? policy::Value(scale) : setting, form_.style);
  }

  /// Adds values that the lines express in another form. Returns false if one cannot be expressed.
  bool derived() {
    if (has("log2")) {
      const double log2 = std::log2(*policy::number_of(policy_, "init_scale"));
      if (log2 < 0 || log2 != std::floor(log2)) return false;
      put("log2", fmt::format("{:.0f}", log2));
    }
    if (has("threshold_flag")) {
      const auto threshold = policy::number_of(policy_, "threshold");
      put("threshold_flag",
          threshold ? " --threshold-loss-scale " + literal(*threshold, form_.style) : "");
    }
    return true;
  }

  bool fits() {
    const auto defaults = policy::settings_of(policy::make(policy::info_of(policy_).name));
    std::size_t i = 0;
    for (const auto& [name, value] : policy::settings_of(policy_)) {
      const bool changed = value != defaults[i++].second;
      if (has(name)) {
        if (name == form_.whole && !whole(value)) return false;
        put(name,
            name == policy::info_of(policy_).initial ? start_text(value) : text_of(name, value));
      } else if (changed && !elsewhere(name) && !add(name, value)) {
        return false;
      }
    }
    return true;
  }

  /// Returns true if derived() adds the setting, or only Halfscope has it.
  bool elsewhere(std::string_view name) const {
    return of_halfscope(name) || (name == "init_scale" && has("log2")) ||
           (name == "threshold" && has("threshold_flag"));
  }

  bool add(std::string_view name, const policy::Value& value) {
    if (!has("more")) return false;
    if (form_.style == Style::json) {  // the only further key in DeepSpeed's file
      if (name != "consecutive_hysteresis") return false;
      more_ += fmt::format(", \"{}\": {}", name, literal(value, form_.style));
      return true;
    }
    more_ += fmt::format(", {}={}", name, text_of(name, value));
    return true;
  }

  const PolicyTemplate& form_;
  const policy::Policy& policy_;
  fmt::dynamic_format_arg_store<fmt::format_context> named_;
  std::string more_;
};

const PolicyTemplate* template_for(const policy::Policy& policy, std::string_view framework) {
  const PolicyTemplate* found = nullptr;
  for (const PolicyTemplate& form : kPolicyTemplates) {
    if (form.policy != policy::info_of(policy).name) continue;
    if (found == nullptr || form.framework == framework) found = &form;
  }
  return found;
}

}  // namespace

std::optional<Paste> paste_of(const policy::Policy& policy, std::string_view framework) {
  const PolicyTemplate* form = template_for(policy, framework);
  if (form == nullptr || !analyzers::replay::tunable(policy)) return std::nullopt;
  const auto lines = Filled(*form, policy).lines();
  if (!lines) return std::nullopt;
  const auto* paddle = policy::get_if<policy::Paddle>(policy);
  const bool dynamic_graph = paddle != nullptr && paddle->graph == "dynamic";
  return Paste{std::string(form->where), *lines, std::string(dynamic_graph ? "" : form->note)};
}

namespace {

/// Why policies without an initial scale and a growth interval cannot be tuned.
constexpr std::pair<std::string_view, std::string_view> kOtherwise[] = {
    {"static", "a constant scale has none, and what it should be is shown above"},
    {"mxnet-static", "a constant scale has none, and what it should be is shown above"},
    {"chainer",
     "it starts at 1 and grows at every clean step; there is no setting for where it starts"},
    {"os2s-logmax", "it computes the scale from the mean and deviation of the largest gradient"},
    {"nvcaffe", "its scale is a constant K, or follows the largest gradient of the step before"},
    {"als", "it computes a factor for every layer from the layer's weights and gradients"},
    {"te-delayed", "it computes a scale for every tensor from the tensor's largest magnitudes"}};

}  // namespace

std::string why_not_tunable(const policy::Policy& policy) {
  if (analyzers::replay::tunable(policy)) return "";
  for (const auto& [name, why] : kOtherwise) {
    if (name == policy::info_of(policy).name) return std::string(why);
  }
  return "with these settings its scale is constant";
}

}  // namespace halfscope::reports::answer
