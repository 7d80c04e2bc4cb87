# SPDX-License-Identifier: Apache-2.0
"""What values were computed in, which is not what they are stored in.

Under autocast a float32 weight's gradient is a copy of a 16-bit result: what underflowed is already
zero. What is not known is None, and the analyzers then look at the values themselves.
"""

import torch
from torch import nn

# Modules that hand their parameters to operations autocast runs in 16 bits, so that the parameters'
# gradients are 16-bit results too.
_LOWERED = (nn.Linear, nn.Bilinear, nn.modules.conv._ConvNd, nn.RNNBase, nn.RNNCellBase, nn.PReLU)
# Modules whose kernels keep parameters and their gradients in the parameters' own type.
_KEPT = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.Embedding, nn.EmbeddingBag)


_ASKS_BY_DEVICE = hasattr(torch, "get_autocast_dtype")  # 2.4 and later


def autocast_dtype(device_type):
    """The type autocast casts to on this device, or None where it is off."""
    if _ASKS_BY_DEVICE:
        enabled = torch.is_autocast_enabled(device_type)
        return torch.get_autocast_dtype(device_type) if enabled else None
    if device_type == "cpu":
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def autocast_now(model):
    """{device: that type}, for the model's devices."""
    return {device: autocast_dtype(device) for device in {p.device.type for p in model.parameters()}}


class Provenance:
    """Of one step: told about every module's output, asked about gradients."""

    def __init__(self):
        self.called = False  # whether a call of the model or of a module of it was seen
        self.casts = {}  # device -> the type that autocast cast to, where it was on
        self._computed = {}  # id of a parameter -> dtype, or None when unknown or in dispute

    def activation_grad(self, output, cast):
        """An output wider than autocast's type may feed an operation that casts it: its gradient
        then comes back through 16 bits."""
        return output.dtype if cast is None or output.dtype == cast else None

    def see(self, module, output, cast):
        """Called after each call of a module without submodules, with one of its outputs. cast: what
        autocast casts to there."""
        self.called = True
        if cast is not None:
            self.casts[output.device.type] = cast
        for parameter in module._parameters.values():  # parameters() takes ten times as long
            if parameter is None:
                continue
            computed = self._of_parameter(module, parameter, output, cast)
            if self._computed.setdefault(id(parameter), computed) != computed:
                self._computed[id(parameter)] = None

    def _of_parameter(self, module, parameter, output, cast):
        if isinstance(module, _KEPT):
            return parameter.dtype
        if cast is None:  # a module that casts by itself, inside, is not known
            return parameter.dtype if output.dtype == parameter.dtype else None
        if isinstance(module, _LOWERED) and output.dtype == cast:
            return cast
        return None

    def weight_grad(self, parameter):
        """The type a parameter's gradient was computed in, as far as it is known."""
        if id(parameter) in self._computed:
            return self._computed[id(parameter)]
        return parameter.dtype if self.called and not self.casts else None
