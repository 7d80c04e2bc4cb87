# SPDX-License-Identifier: Apache-2.0
"""Records PyTorch training runs: docs/recording.md."""

from halfscope.torch.recorder import Recorder

__all__ = ["Recorder"]
