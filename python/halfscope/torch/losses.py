# SPDX-License-Identifier: Apache-2.0
"""The losses of a step that has not been attempted yet."""

import torch

from halfscope.torch.gpu import number_later


class Losses:
    """Losses that the loop notes, and those that it scales, each with its round of the modules."""

    def __init__(self):
        self.noted, self._scaled = [], []

    def note(self, round_, loss):
        self.noted.append((round_, number_later(loss.detach() if isinstance(loss, torch.Tensor) else loss)))

    def note_scaled(self, round_, loss):
        self._scaled.append((round_, number_later(loss)))

    def take(self):
        """Returns and forgets the noted losses, else those that were scaled: for number_of()."""
        losses = self.noted or self._scaled
        self.noted, self._scaled = [], []
        return [loss for _, loss in losses]

    def drop_before(self, first):
        """Forgets the losses of rounds before `first`."""
        self.noted, self._scaled = ([(round_, loss) for round_, loss in losses if round_ >= first]
                                     for losses in (self.noted, self._scaled))
