# SPDX-License-Identifier: Apache-2.0
"""Records a training run of the Hugging Face Trainer: docs/recording.md.

    trainer = transformers.Trainer(..., callbacks=[halfscope.transformers.RecorderCallback("run", every=100)])
"""

import itertools

try:
    from transformers import TrainerCallback
except ImportError:
    raise ImportError("halfscope.transformers needs Transformers: pip install transformers") from None

from halfscope.torch.callbacks import RecorderParts
from halfscope.torch.guard import Hook, call


class RecorderCallback(RecorderParts, TrainerCallback):
    """RecorderCallback(out, every=1, **settings) with the arguments of halfscope.torch.Recorder.
    The scaler and the first step come from the trainer."""

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **_):
        self._losses = []  # (loss of a microbatch, True if the loss is a part of the step's sum)
        clip = args.max_grad_norm
        self.begin(model, [optimizer], first_step=state.global_step,
                   clipping=f"norm {clip}" if clip else None)
        self._scaled = getattr(optimizer, "scaler", None) is not None  # scale() shows the loss
        self._hook = model.register_forward_hook(Hook(call, self._returned), with_kwargs=True)

    def _returned(self, model, inputs, named, output):
        loss = output.get("loss") if isinstance(output, dict) else None
        if model.training and loss is not None and not self._scaled:
            self._losses.append((loss.detach().mean(), named.get("num_items_in_batch") is not None))

    def on_pre_optimizer_step(self, args, state, control, **_):
        """Adds up the losses as the Trainer does, which passes its own loss to no callback."""
        for recorder, (loss, is_part) in itertools.product(self.recorders, self._losses):
            recorder.loss(loss if is_part else loss / len(self._losses))
        self._losses.clear()

    def on_train_end(self, args, state, control, **_):
        self._hook.remove()
        self.end()
