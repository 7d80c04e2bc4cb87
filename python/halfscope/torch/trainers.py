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
        callbacks.insert(0, _callback(record, ours))


def _callback(record, ours):
    class Callback(importlib.import_module(ours).RecorderCallback):
        """Never ends the training: what cannot be recorded is a note."""

        def begin(self, model, optimizers, **settings):
            self._out = record.free_folder()
            record._numbered += 1  # optimizers outside of the trainer are later ones
            most = record._most if record._most > 1 or self._out == record.out else 0
            if len(optimizers) > most:
                record._tell_most()
            record.guarded(super().begin, model, optimizers[:most], **settings)

        def __reduce__(self):
            return _restored, (type(record), record.out, record._most == 1, record.settings, ours)

    return Callback(record.out, **{"on_error": lambda note: record.tell(note), **record.settings})


def _restored(kind, out, only_one, settings, ours):
    """Returns the callback of a copied trainer, such as that of a process that the trainer spawns."""
    return _callback(kind(out, only_one=only_one, **settings), ours)
