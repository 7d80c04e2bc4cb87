// SPDX-License-Identifier: Apache-2.0
// Lines that record what another tool's log lacks. tests/python/test_recording_lines.py runs them.
#include "reports/answer/gaps.hpp"

namespace halfscope::reports::answer {

namespace {

constexpr Recording kPyTorch = {
    "with PyTorch, around the training loop; add scaler=scaler where there is a GradScaler "
    "(docs/recording.md)",
    "from halfscope.torch import Recorder\n"
    "with Recorder(model, optimizer, \"run\", every=100, sample_every=1000):\n"
    "    ...  # the training loop, as it is"};

// DeepSpeed's ZeRO optimizers return the full gradient with the loss scale that their step divides
// by (deepspeed/utils/tensor_fragment.py). Every rank must make the call.
constexpr Recording kDeepSpeed = {
    "with DeepSpeed, on every rank, between engine.backward(loss) and engine.step(), into a folder "
    "run (docs/folders.md)",
    "import safetensors.torch; from deepspeed.utils import safe_get_full_grad as full\n"
    "grads = {f\"weight_grad/{n}\": full(p).cpu() for n, p in engine.module.named_parameters() "
    "if p.requires_grad}\n"
    "engine.global_rank or safetensors.torch.save_file(grads, f\"run/step-{step}.safetensors\", "
    "{\"gradients\": \"scaled\", \"scale\": str(engine.optimizer.loss_scale)})"};

constexpr Recording kTensorFlow = {
    "with TensorFlow, where gradients = tape.gradient(...) are unscaled, into a folder run "
    "(docs/folders.md)",
    "import numpy as np\n"
    "grads = [(v.name, np.asarray(g)) for v, g in zip(model.trainable_variables, gradients)]\n"
    "np.savez(f\"run/step-{step}.npz\", **{f\"weight_grad/{i}/{n}\": g for i, (n, g) in "
    "enumerate(grads)})"};

constexpr Recording kPaddle = {
    "with Paddle, between loss.backward() and optimizer.step(), into a folder run "
    "(docs/folders.md)",
    "import numpy as np\n"
    "grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}\n"
    "np.savez(f\"run/step-{step}.npz\", **{f\"weight_grad/{n}\": g.numpy() for n, g in "
    "grads.items()})"};

}  // namespace

Recording recording_for(Framework framework) {
  switch (framework) {
    case Framework::pytorch: return kPyTorch;
    case Framework::deepspeed: return kDeepSpeed;
    case Framework::tensorflow: return kTensorFlow;
    case Framework::paddle: return kPaddle;
  }
  return kPyTorch;
}

}  // namespace halfscope::reports::answer
