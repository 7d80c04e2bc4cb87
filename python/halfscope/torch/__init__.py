# SPDX-License-Identifier: Apache-2.0
"""Records PyTorch training runs (docs/recording.md), and emulates 16-bit ones (docs/simulate.md)."""

from halfscope._parts import part

part("torch", "halfscope.torch", "'halfscope[torch]'")  # before the modules that import it

from halfscope.torch.emulate_loop import emulate
from halfscope.torch.record import record
from halfscope.torch.recorder import Recorder

__all__ = ["Recorder", "emulate", "record"]
