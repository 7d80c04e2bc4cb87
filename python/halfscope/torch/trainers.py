# SPDX-License-Identifier: Apache-2.0
"""Adds the recorder's callbacks to trainers that a program makes: Hugging Face Trainer, Lightning."""

import functools
import importlib

from halfscope._imports import after_import
from halfscope.torch.callbacks import RecorderParts

# (module of the class Trainer, module of its RecorderCallback)
_TRAINERS = (("transformers.trainer", "halfscope.transformers"),
             ("lightning.pytorch.trainer.trainer", "halfscope.lightning"),
             ("pytorch_lightning.trainer.trainer", "halfscope.lightning"))


def watch(record):
    """Adds a callback to each trainer that is made while `record` records."""
    for trainer, ours in _TRAINERS:
        after_import(trainer, lambda module, ours=ours: record.patch(
            module.Trainer, "__init__", functools.partial(_make, record, ours)))


def _make(record, ours, original, trainer, *args, **kwargs):
    original(trainer, *args, **kwargs)
    record.guarded(_add, record, ours, trainer)


def _add(record, ours, trainer):
    handler = getattr(trainer, "callback_handler", None)  # the Trainer of Transformers
    callbacks = trainer.callbacks if handler is None else handler.callbacks
    if not any(isinstance(callback, RecorderParts) for callback in callbacks):
        callbacks.insert(0, _callback(record, importlib.import_module(ours).RecorderCallback))


def _callback(record, base):
    class Callback(base):
        """Never ends the training: what cannot be recorded is a note."""

        def begin(self, model, optimizers, **settings):
            self._out = record.free_folder()
            record.guarded(super().begin, model, optimizers, **settings)

    return Callback(record.out, **{"on_error": lambda note: record.tell(note), **record.settings})
