# SPDX-License-Identifier: Apache-2.0
"""PyTorch's fast path of transformer encoders, turned off.

In evaluation without gradients nn.TransformerEncoderLayer is one operation that calls none of its
submodules, so that their hooks see nothing (PyTorch 1.13; later ones look for hooks first), and
nn.TransformerEncoder makes nested tensors of padded input for it. Both ask attributes of their own
before they do. torch.backends.mha has a switch in newer versions, for all models of a process; the
attributes are of one model and in all versions.
"""

from torch import nn

# What makes the module take its layers one by one. Their values have no other use.
_SLOW = {nn.TransformerEncoderLayer: {"activation_relu_or_gelu": 0},
         nn.TransformerEncoder: {"enable_nested_tensor": False, "use_nested_tensor": False}}


class NoFastPath:
    """Transformer encoders in a model, between start() and stop()."""

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
