# SPDX-License-Identifier: Apache-2.0
"""Recorders that begin and end with a framework's training loop. Shared by halfscope.lightning and
halfscope.transformers."""

import os

from halfscope import _halfscope
from halfscope.torch.recorder import Recorder


class RecorderParts:
    """Base class of callbacks. The arguments are those of halfscope.torch.Recorder."""

    def __init__(self, out, every=1, **settings):
        super().__init__()
        self._out, self._every, self._settings = out, every, settings
        self._asked = []  # alerts: (when, do)
        self.recorders = []  # one for each optimizer, once the training has begun

    @property
    def recorder(self):
        """The Recorder of the first optimizer; None before the training begins."""
        return self.recorders[0] if self.recorders else None

    def alert(self, when, do=None):
        """Same as Recorder.alert(). May be called before the training begins."""
        _halfscope.field_of_step(when)  # ValueError
        self._asked.append((when, do))
        for recorder in self.recorders:
            recorder.alert(when, do)

    def summary(self):
        """Same as Recorder.summary(). Raises RuntimeError before the training begins."""
        if self.recorder is None:
            raise RuntimeError("RecorderCallback: training has not begun, so there is no log yet")
        return self.recorder.summary()

    def begin(self, model, optimizers, **settings):
        """Starts a recorder for each optimizer. Settings of the user take precedence."""
        self.end()
        self.recorders = []
        for i, optimizer in enumerate(optimizers):
            out = os.path.join(self._out, f"optimizer-{i}") if len(optimizers) > 1 else self._out
            recorder = Recorder(model, optimizer, out, self._every, **{**settings, **self._settings})
            for when, do in self._asked:
                recorder.alert(when, do)
            try:
                recorder.start()
            except Exception:
                self.end()
                raise
            self.recorders.append(recorder)

    def end(self):
        for recorder in self.recorders:
            recorder.stop()
