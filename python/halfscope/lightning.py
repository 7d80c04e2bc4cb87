# SPDX-License-Identifier: Apache-2.0
"""Records a training run of Lightning: docs/recording.md.

    trainer = lightning.Trainer(callbacks=[halfscope.lightning.RecorderCallback("run", every=100)])
"""

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback
    except ImportError:
        raise ImportError("halfscope.lightning needs Lightning: pip install lightning") from None

from halfscope.torch.callbacks import RecorderParts


class RecorderCallback(RecorderParts, Callback):
    """RecorderCallback(out, every=1, **settings) with the arguments of halfscope.torch.Recorder.
    The scaler and the first step come from the trainer. With several optimizers, their logs are in
    the folders optimizer-0, ... of `out`."""

    def on_train_start(self, trainer, pl_module):
        self._scaler = getattr(trainer.precision_plugin, "scaler", None)
        clip = trainer.gradient_clip_val
        self.begin(pl_module, trainer.optimizers, scaler=self._scaler, first_step=trainer.global_step,
                   clipping=f"{trainer.gradient_clip_algorithm or 'norm'} {clip}" if clip else None)

    def on_before_backward(self, trainer, pl_module, loss):
        if self._scaler is None and len(self.recorders) == 1:  # else scaler.scale() shows the loss
            self.recorder.loss(loss)

    def on_train_end(self, trainer, pl_module):
        self.end()

    def on_exception(self, trainer, pl_module, exception):
        self.end()
