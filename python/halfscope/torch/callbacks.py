# SPDX-License-Identifier: Apache-2.0
"""What halfscope.lightning and halfscope.transformers share: recorders that begin and end with a
framework's training loop."""

import os

from halfscope import _halfscope
from halfscope.torch.recorder import Recorder


class RecorderParts:
    """Methods of a callback. out, every and the settings are those of halfscope.torch.Recorder."""

    def __init__(self, out, every=1, **settings):
        super().__init__()
        self._out, self._every, self._settings = out, every, settings
        self._asked = []  # alerts
        self.recorders = []  # one an optimizer, from the beginning of the training on

    @property
    def recorder(self):
        """The Recorder of the first optimizer; None before the training begins."""
        return self.recorders[0] if self.recorders else None

    def alert(self, when, do=None):
        """As Recorder.alert(); also before the training begins."""
        _halfscope.field_of_step(when)  # ValueError
        self._asked.append((when, do))
        for recorder in self.recorders:
            recorder.alert(when, do)

    def summary(self):
        """As Recorder.summary()."""
        if self.recorder is None:
            raise RuntimeError("RecorderCallback: training has not begun, so there is no log yet")
        return self.recorder.summary()

    def begin(self, model, optimizers, **settings):
        """For the framework: a recorder for each optimizer. The user's settings go first."""
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
