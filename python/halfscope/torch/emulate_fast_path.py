# SPDX-License-Identifier: Apache-2.0
"""Turns off PyTorch's fast path of transformer encoders.

In evaluation without gradients, nn.TransformerEncoderLayer runs as one operation and calls none of
its submodules, so their hooks see nothing (PyTorch 1.13; later versions check for hooks first).
nn.TransformerEncoder makes nested tensors from padded input for it. Both first check attributes of
the module, which are changed here. torch.backends.mha has a switch only in newer versions, and for
all models of a process.
"""

from torch import nn

# Values with which the module runs its layers one by one. The attributes have no other use.
_SLOW = {nn.TransformerEncoderLayer: {"activation_relu_or_gelu": 0},
         nn.TransformerEncoder: {"enable_nested_tensor": False, "use_nested_tensor": False}}


class NoFastPath:
    """Turns off the fast path of a model's transformer encoders between start() and stop()."""

    def __init__(self, model):
        self._model = model
        self._before = []

    def start(self):
        for module in self._model.modules():
            for kind, settings in _SLOW.items():
                if isinstance(module, kind):
                    self._set(module, settings)

    def stop(self):
        while self._before:
            module, name, value = self._before.pop()
            setattr(module, name, value)

    def _set(self, module, settings):
        for name, value in settings.items():
            if name in vars(module):
                self._before.append((module, name, getattr(module, name)))
                setattr(module, name, value)
