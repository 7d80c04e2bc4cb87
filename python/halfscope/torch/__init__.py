# SPDX-License-Identifier: Apache-2.0
"""Records PyTorch training runs (docs/recording.md), and emulates 16-bit ones (docs/simulate.md)."""

from halfscope.torch.emulate_loop import emulate
from halfscope.torch.recorder import Recorder

__all__ = ["Recorder", "emulate"]
